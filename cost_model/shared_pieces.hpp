#pragma once
// What layouts that differ only in ZeRO stage, HSDP and offload have in common: a search asks about
// many of them in a row.

#include <deque>
#include <optional>
#include <vector>

#include "cost_model/program/footprint.hpp"
#include "cost_model/stages.hpp"

namespace zeroplan {

/// Of one pipeline rank: what its passes need above what is resident, and what stays besides the
/// model states.
struct PassesOfStage {
  MemoryBreakdown resident;
  Footprint passes;
};

struct SharedPieces {
  Layout layout;  // with those three at their defaults
  TrainingSpec training;
  std::vector<Stage> stages;
  std::vector<std::size_t> first_alike;  // of each stage, the first of its run of alike neighbours
  std::vector<std::optional<PassesOfStage>> passes;  // of each stage, when asked for
};

/// The pieces of the last few layouts.
class RecentPieces {
 public:
  /// Those of this problem, kept from one of the last calls or made anew. Valid until `kept` other
  /// layouts were asked about.
  SharedPieces& of(const Problem& problem);

  static constexpr std::size_t kept = 8;

 private:
  std::deque<SharedPieces> recent_;  // the latest first
};

}  // namespace zeroplan
