#pragma once
// How simple is a layout: how little of it would an engineer have to justify?

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "cost_model/legality/legality.hpp"
#include "planner/request.hpp"

namespace zeroplan {

/// What a layout does out of the ordinary.
enum class Departure {
  context,       // divides a sequence that is not long enough to ask for it
  tensor_reach,  // tensor parallelism leaves the node
  zero,          // a ZeRO stage that the runtime does not have by default
  offload,
  recompute,  // of some layers or modules only
  ends,       // stages of unequal numbers of layers
  groups,     // states are shared by some replicas only
  sequence,   // tensor parallelism without sequence parallelism
  schedule,   // other than one forward, one backward
  settings,   // buckets, resharding or the parts of the loss not at their defaults
};
template <>
struct Spellings<Departure> {
  static constexpr std::array<std::string_view, 10> value{
      "cp",   "tp over nodes", "ZeRO stage",           "offload",  "partial recompute",
      "ends", "hsdp",          "no sequence parallel", "schedule", "settings"};
};

/// How simple a layout is: less is simpler, compared in this order. How many chunks a rank has does
/// not matter once there are several: more of them need less memory.
struct Simplicity {
  unsigned departures = 0;   // as bits
  std::int64_t kinds = 0;    // of parallelism in use, chunks and recompute among them
  std::int64_t replica = 1;  // GPUs that hold the model once: they wait for each other, and fail
                             // together

  bool departs(Departure d) const { return (departures >> static_cast<unsigned>(d) & 1U) != 0; }

  /// Plans compare by this number as by (number of departures, kinds, doublings of the replica).
  std::int64_t rank() const {
    constexpr std::int64_t most_kinds = 16;
    constexpr std::int64_t most_doublings = 64;
    const std::int64_t doublings = std::bit_width(static_cast<std::uint64_t>(replica - 1));
    return (std::popcount(departures) * most_kinds + kinds) * most_doublings + doublings;
  }
};

/// Weighs the layouts of one request. What the request itself asks for is no departure.
class SimplicityOf {
 public:
  explicit SimplicityOf(const Request& request);

  /// The simplicity of a layout whose first `depth` fields of choice_order are chosen: no
  /// completion is simpler.
  Simplicity operator()(const Problem& problem, std::size_t depth = choice_order.size()) const;

 private:
  bool splits_norms_;          // by sequence parallelism
  unsigned usual_stages_ = 0;  // of ZeRO, as bits
  unsigned asked_ = 0;         // departures that are given
};

}  // namespace zeroplan
