#pragma once
// How long the modules of a model compute on one rank for one micro-batch, each by itself.

#include <vector>

#include "cost_model/kernel/kernel_time.hpp"
#include "cost_model/program/kernel.hpp"
#include "cost_model/question/problem.hpp"
#include "cost_model/rank/layer_part.hpp"

namespace zeroplan {

/// Sustained seconds of one module on the cluster's GPU.
struct ModuleTime {
  Module module{};
  KernelTime forward;
  KernelTime input_gradient;
  KernelTime weight_gradient;

  const KernelTime& at(Product product) const;
};
using ModuleTimes = std::vector<ModuleTime>;

/// The times of a layer's modules. Does not read the layout's recompute policy.
ModuleTimes module_times(const Problem& problem, LayerKind kind, LayerPart part = LayerPart::whole);

/// The times of the modules of the embedding; of final norm, output layer and loss, the last two of
/// one part of the loss (rank/loss_parts.hpp); of what stands before a multi-token-prediction
/// module's layer.
ModuleTimes embedding_times(const Problem& problem);
ModuleTimes head_times(const Problem& problem);
ModuleTimes mtp_input_times(const Problem& problem);

/// The time of this module; null where `times` has none, as those of another part of the layer.
const ModuleTime* find(const ModuleTimes& times, Module module);

}  // namespace zeroplan
