#pragma once
// The profiles of a model's pipeline ranks, each made once for all layouts of one order of passes.

#include <unordered_map>

#include "cost_model/program/in_flight_counts.hpp"
#include "cost_model/question/numbers.hpp"
#include "cost_model/rank/stages.hpp"

namespace zeroplan {

/// A rank's profile, and which of its chunks are of one kind.
struct RankInFlight {
  std::vector<std::int32_t> kinds;  // of each chunk
  std::vector<std::size_t> firsts;  // the first chunk of each kind
  InFlightCounts profile;

  /// What all passes leave and need at most above what is resident. Empty where only a fold tells.
  std::optional<PassBytes> passes(std::span<const ChunkBytes> sizes, Bytes boundary) const;
  std::optional<PassBytes> passes(const StageProgram& program) const;
};

/// The profiles of one model's ranks in one runtime with its settings.
class InFlightCache {
 public:
  /// The profile of rank `rank`, which holds `stage`, under a schedule of whole backward passes.
  /// `places`: a program whose chunks stand as the rank's do.
  const RankInFlight& find_or_make(const Problem& problem,
                                   const Stage& stage,
                                   std::int64_t rank,
                                   const StageProgram& places,
                                   FirstMicroBatch first);

 private:
  std::unordered_map<Numbers<7>, RankInFlight, NumbersHash> made_;  // by pipeline and rank
};

}  // namespace zeroplan
