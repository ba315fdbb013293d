#pragma once
// Which modules a layer has, for programs that do not tell its operators apart.

#include <vector>

#include "cost_model/program/block.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

struct LayerModule {
  Module module{};
  bool linear = false;
};
using ModuleList = std::vector<LayerModule>;

/// The modules of each half of a layer with its residual, in the order of a forward pass.
struct LayerModules {
  ModuleList attention;
  ModuleList feed_forward;
};

/// All modules that module_time.hpp knows of a layer of this kind, but for the sum of its
/// gradients.
LayerModules layer_modules(const Problem& problem, LayerKind kind);

/// Runs modules one after the other; and their gradients, the last one's first.
void run(BlockWriter& w, const ModuleList& modules);
void run_backward(BlockWriter& w, const ModuleList& modules);

}  // namespace zeroplan
