#pragma once
// One field of a layout as an axis of a search: its values, given the fields chosen before it.

#include <cstdint>
#include <optional>

#include "cost_model/legality/legality.hpp"
#include "planner/request.hpp"
#include "planner/sweep/values.hpp"

namespace zeroplan {

/// How far a tensor-parallel group may reach.
enum class TensorReach { cluster, node };

/// What is searched: the open fields of the request.
struct SearchSpace {
  Request request;
  TensorReach tensor_reach = TensorReach::cluster;
  bool spares_buffers = false;  // tensor parallelism without tp_comm_overlap's buffers too
};

/// Widest group, and largest micro-batch, that a search tries where the field is open: as in the
/// largest published runs, twice over.
inline constexpr std::int64_t widest_degree = 64;
inline constexpr std::int64_t largest_micro_batch = 32;

/// Sets a field of choice_order. Enumerators are passed by their number.
void set_value(Layout& layout, Field field, std::int64_t value);

/// The values of `field` that the search tries, where `so_far` has every field before it in
/// choice_order: the given one, else all that the runtime may be able to execute; the rules decide.
/// Offload is tried in DeepSpeed alone, the optimizer's: what it costs elsewhere no step time
/// counts.
Values choices(const SearchSpace& space, Field field, const Problem& so_far);

/// A copy of the problem, of which a search changes no more than this: the rest is costly to copy.
inline Problem& follow(std::optional<Problem>& copy, const Problem& p) {
  if (!copy) copy = p;
  copy->layout = p.layout;
  copy->runtime = p.runtime;
  copy->training = p.training;
  return *copy;
}

}  // namespace zeroplan
