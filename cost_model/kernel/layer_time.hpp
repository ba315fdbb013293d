#pragma once
// How long one rank computes for one micro-batch: a layer, the embedding, the head with its loss.
// Communication is not in it.

#include <algorithm>

#include "cost_model/kernel/host_time.hpp"
#include "cost_model/kernel/module_time.hpp"
#include "cost_model/program/block.hpp"
#include "cost_model/question/problem.hpp"
#include "cost_model/rank/layer_part.hpp"

namespace zeroplan {

/// One block, for one micro-batch on one rank.
struct BlockTime {
  KernelTime forward;
  KernelTime recompute;        // what of forward runs again before backward
  KernelTime input_gradient;   // backward but for the weights: zero-bubble's B
  KernelTime weight_gradient;  // zero-bubble's W
  HostTime host;

  KernelTime backward() const { return recompute + input_gradient + weight_gradient; }
  /// What passes until the block is done: the slower of GPU and host.
  double forward_seconds() const { return std::max(forward.total(), host.forward); }
  double backward_seconds() const { return std::max(backward().total(), host.backward); }

  BlockTime& operator+=(const BlockTime& other) {
    forward += other.forward;
    recompute += other.recompute;
    input_gradient += other.input_gradient;
    weight_gradient += other.weight_gradient;
    host += other.host;
    return *this;
  }
};

/// What a kernel takes; nothing where `times` lacks its module, as those of another part of the
/// layer.
KernelTime kernel_time(const Kernel& kernel, const ModuleTimes& times);

/// The kernels of a block's passes. All of the forward pass count there, also
/// gradients of a loss in parts.
BlockTime fold_kernels(const Block& block, const ModuleTimes& times);

/// The kernels of the passes of a layer's block, with the gaps between them. No host time.
BlockTime fold_layer(const Problem& problem,
                     const Block& block,
                     const ModuleTimes& times,
                     LayerPart part = LayerPart::whole);

/// Sustained seconds of one layer on the cluster's GPU with what the layout's recompute policy
/// repeats, and the host.
BlockTime layer_time(const Problem& problem, LayerKind kind);

/// Sustained seconds of the embedding, and of the head with its loss, without the host.
BlockTime embedding_time(const Problem& problem);
BlockTime head_time(const Problem& problem);

}  // namespace zeroplan
