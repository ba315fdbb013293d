#pragma once
// What a search tries of recompute: how much of a layer, of which layers, and which modules.

#include "planner/request.hpp"
#include "planner/sweep/values.hpp"

namespace zeroplan {

/// Values of Recompute: all of them where modules can be named, since full recompute may then mean
/// some layers; else those that the planner chooses from.
Values recompute_policies(const Request& request);

/// Of each chunk, in Megatron-Core; 0: all, which is what full recompute means where it is given.
Values recompute_layers(const Request& request, const Problem& so_far);
/// Sets what one of these stands for: the number, and what the other layers do.
void set_recompute_layers(Layout& layout, std::int64_t value);

/// Sets as bits of RecomputeModule; 0: as the runtime is set, the only one where selective
/// recompute, or what it takes, is not open.
Values recompute_modules(const Request& request, const Problem& so_far);

}  // namespace zeroplan
