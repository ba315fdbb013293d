#pragma once
// What a block sends, and how often a step does.

#include <string_view>
#include <vector>

#include "cost_model/question/collective.hpp"

namespace zeroplan {

/// Which part of a step waits for a collective.
enum class During {
  forward,   // of each micro-batch
  backward,  // of each micro-batch; what recompute repeats of the forward pass too
  step,      // once, around the optimizer
};

template <>
struct Spellings<During> {
  static constexpr std::array<std::string_view, 3> value{"forward", "backward", "step"};
};

/// Whether the ranks of this group divide or repeat model states; else they divide the model.
constexpr bool holds_states(std::string_view group) {
  return group == "dp" || group == "shard" || group == "replica" || group == "expert-dp" ||
         group == "secondary";
}

/// A collective of a block, with one payload.
struct Call {
  std::string_view group;  // by its name (network/rank_groups.hpp); it may have one rank alone
  Collective collective = Collective::all_reduce;
  During during = During::step;
  Bytes payload;              // as in collective.hpp
  std::int64_t times = 1;     // in a row, or in what was summed up
  bool asynchronous = false;  // started beside the matrix products of the same linear

  /// Of one kind with another, whatever their times.
  bool is_like(const Call& other) const {
    return group == other.group && collective == other.collective && during == other.during &&
           payload == other.payload && asynchronous == other.asynchronous;
  }
};

/// Those in groups that hold states, or the others.
std::vector<Call> calls_of(const std::vector<Call>& calls, bool states);

/// Adds a call so many times over, to its like where there is one.
void add(std::vector<Call>& calls, const Call& call, std::int64_t times = 1);

/// The same call in a block that ends the step.
inline Call of_step(Call call) {
  call.during = During::step;
  return call;
}

}  // namespace zeroplan
