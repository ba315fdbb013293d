#pragma once
// A prediction beside what really happened.

#include <functional>
#include <string>
#include <vector>

#include "validator/prediction.hpp"
#include "validator/seconds.hpp"
#include "validator/shrink.hpp"

namespace zeroplan::engine {

/// Calls of one kind of a rank in a step.
struct ComparedCalls {
  std::string_view group;
  std::int64_t ranks = 1;
  Collective collective = Collective::all_reduce;
  Bytes payload;
  std::int64_t predicted = 0;  // calls
  std::int64_t measured = 0;

  Bytes sent(std::int64_t calls) const {
    return calls * sent_bytes_per_rank(collective, ranks, payload);
  }
};

/// One rank: memory at its peak, and calls of one step.
struct ComparedRank {
  Place place;
  Ledger::Peak predicted, measured;
  std::vector<ComparedCalls> calls;

  bool agrees() const;
};

/// Whether a run under another ZeRO stage has the same numbers.
struct ComparedStage {
  ZeroStage zero = ZeroStage::none;
  bool losses_equal = false;
  bool parameters_equal = false;
  bool expected = false;  // that stage reduces as often, so every bit should be equal

  bool agrees() const { return !expected || (losses_equal && parameters_equal); }
};

struct Validation {
  Shrunk full;   // the plan as the engine executes it
  Shrunk small;  // what was run of it
  std::vector<ComparedRank> ranks;
  std::vector<double> losses;
  std::vector<ComparedStage> stages;
  double seconds = 0;                 // of the run
  ComparedSeconds time;               // of a step
  std::vector<ComparedRank> counted;  // a rank of each stage of the full plan, without computing

  bool agrees() const;
  /// The rank with the highest measured peak.
  const ComparedRank& worst() const;
};

/// Lays what a rank reported beside its prediction.
ComparedRank compared(const Problem& problem, const Evaluator& evaluator, const RankReport& report);

/// The first rank of stage `stage` of the whole problem, counted with its peers absent.
ComparedRank counted_rank(const Problem& problem, std::int64_t stage);

/// What of a run is asked for: its bytes, or its seconds. A GPU's memory is told apart by an
/// allocator that waits for all of it, so that one run does not tell both.
enum class Asked { bytes, seconds };
using Runner = std::function<RunReport(const Problem&, Asked)>;

/// The options of a run, timed where its seconds are asked for.
RunOptions timed_where(RunOptions options, Asked asked);

/// Runs `small`, which is what is to be run of `full`, under its own ZeRO stage first, once more
/// for its seconds, then under the others, and counts a rank of each stage of the full plan. Throws
/// what `run` throws.
Validation validated(Shrunk full, Shrunk small, const Runner& run);

/// Validates the plan as it shrinks to the room, on the host.
Validation validate_on_host(Shrunk full, const Room& room, const RunOptions& options);

}  // namespace zeroplan::engine
