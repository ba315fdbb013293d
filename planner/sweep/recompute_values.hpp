#pragma once
// What a search tries of recompute: how much of a layer, of which layers, and which modules.

#include "planner/request.hpp"
#include "planner/sweep/values.hpp"

namespace zeroplan {

/// Values of Recompute: all of them where modules can be named, since full recompute may then mean
/// some layers; else those that the planner chooses from.
Values recompute_policies(const Request& request);

/// What is open of the layers of a chunk: nothing where the policy is given.
LayerChoices open_layers(const Request& request, Recompute policy);

/// Numbers of layers to recompute of each chunk; 0: all, the only one where nothing is open, else
/// beside each number from 1.
Values recompute_layers(const Request& request, const Problem& so_far);
/// Sets what one of the values of recompute_layers stands for: the number, and what the other
/// layers do.
void set_recompute_layers(Layout& layout, std::int64_t value);

/// Sets of modules to recompute, as bits of RecomputeModule; 0: as the runtime is set, the only one
/// where selective recompute, or what it takes, is not open.
Values recompute_modules(const Request& request, const Problem& so_far);

}  // namespace zeroplan
