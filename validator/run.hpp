#pragma once
// A whole layout run on this machine, its ranks as threads; or one rank of it counted alone.

#include <chrono>
#include <functional>
#include <string_view>
#include <vector>

#include "validator/engine.hpp"

namespace zeroplan::engine {

struct RunOptions {
  std::int64_t steps = 5;
  Bytes capacity;                              // of each rank; 0: no limit
  std::chrono::milliseconds patience{60'000};  // how long a rank waits for its peers
  bool timed = false;                          // also says where the seconds of a step went
  AdamStep adam;
  SampleSource samples;  // none: successions (see below)
  /// Called by each rank before each step, with its world rank.
  std::function<void(std::int64_t rank, std::int64_t step)> before_step;
};

/// Traffic of one rank in one step, by group.
struct GroupTraffic {
  std::string_view group;  // tp, dp, pp, embedding
  std::int64_t ranks = 1;
  Traffic traffic;
};

struct RankReport {
  Place place;
  std::vector<double> losses;  // this rank's share, by step
  Ledger::Peak peak;           // over all steps
  std::vector<GroupTraffic> traffic;
  StepSeconds seconds;  // where timed: of the step that took the middle of all but the first
  std::vector<std::vector<Bf16>> own_parameters, kept_parameters;  // by unit, after the last step
};

struct RunReport {
  std::vector<RankReport> ranks;  // tp fastest, then dp, then pp
  double seconds = 0;

  /// Mean loss over the global batch, by step: shares added in the order of ranks.
  std::vector<double> losses() const;
};

/// Runs every rank of the layout on the host. Throws PeerLost, OutOfMemory or whatever else the
/// first rank to fail threw; the others end with it. Assumes a legal problem of runtime zeroplan.
RunReport run_on_host(const Problem& problem, const RunOptions& options);

/// One step of the rank at `place` with nothing computed and all peers absent.
RankReport count_rank(const Problem& problem, const Place& place);

/// Samples in which each token follows from the one before, so that a model can learn them.
SampleSource successions(std::int64_t vocabulary, std::int64_t sequence);

}  // namespace zeroplan::engine
