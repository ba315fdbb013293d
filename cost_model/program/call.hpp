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

/// Which work a program runs a collective beside, where it is not the runtime's general habit.
enum class Beside : std::uint8_t {
  nothing,
  products,  // of the same linear: weight gradients while input gradients travel
  parts,     // of the same linear, part by part
  pass,      // the same pass: it was seen on a stream of its own
  waited,    // none: what reads it comes next
};

/// Whether the ranks of this group divide or repeat model states; else they divide the model.
constexpr bool holds_states(std::string_view group) {
  return group == "dp" || group == "shard" || group == "replica" || group == "expert-dp" ||
         group == "secondary" || group == "expert-secondary";
}

/// Which ranks of a group take part: all of them; or, of a collective that goes by way of the
/// nodes, those of one node, or those that stand alike in each.
enum class Across { group, node, nodes };

/// A collective of a block, with one payload.
struct Call {
  std::string_view group;  // by its name (network/rank_groups.hpp); it may have one rank alone
  Collective collective = Collective::all_reduce;
  During during = During::step;
  Bytes payload;           // as in collective.hpp
  std::int64_t times = 1;  // in a row, or in what was summed up
  Beside beside = Beside::nothing;
  Across across = Across::group;
  std::int64_t layers = 0;  // that it brings one by one: a chunk's pass waits for its first
  bool along_pass = false;  // its times come all along the pass in which it stands

  /// Whether two calls are of one kind, whatever their times.
  bool is_like(const Call& other) const {
    return payload == other.payload && collective == other.collective && during == other.during &&
           beside == other.beside && across == other.across && layers == other.layers &&
           group == other.group;
  }
  /// Whether gradients or parameters are sent, not activations.
  bool is_of_states() const { return during == During::step || holds_states(group); }
};

/// The calls that send gradients and parameters, or, without `states`, the others.
std::vector<Call> calls_of(const std::vector<Call>& calls, bool states);

/// Adds a call so many times over, to its like where there is one.
void add(std::vector<Call>& calls, const Call& call, std::int64_t times = 1);

/// A call as it stands in a block that ends the step.
inline Call of_step(Call call) {
  call.during = During::step;
  return call;
}

}  // namespace zeroplan
