#pragma once
// How a long step goes on once all ranks of a pipeline are at work: round after round.

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "cost_model/pipeline/stage_time.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// A round is a micro-batch of each rank. Each further one takes the same time: a few are run, and
/// a round more where the pace is not known; the rest is continued.
struct Rounds {
  std::int64_t few = 0;     // micro-batches to run
  std::int64_t more = 0;    // with one round more; 0: `few` are all
  std::int64_t length = 0;  // micro-batches of a round
  double left = 0;          // rounds beyond the few
};

/// The rounds of a legal layout's step.
Rounds rounds_of(const Problem& problem);

/// Seconds that a round keeps a rank with these chunks busy: no later round is shorter, though one
/// that was run may be where a slow rank still catches up.
template <class Seconds>
Seconds busy_in_round(const Problem& problem,
                      const Rounds& rounds,
                      std::span<const PassTimeOf<Seconds>> chunks) {
  Seconds each = 0;
  for (const PassTimeOf<Seconds>& chunk : chunks) each += chunk.forward + chunk.backward();
  const bool one_chunk_each = problem.layout.schedule == Schedule::dualpipe;
  return static_cast<double>(rounds.length) / (one_chunk_each ? 2 : 1) * each;
}

/// The pace at which rounds follow each other.
template <class Seconds>
struct RoundPace {
  Seconds round = 0;  // of the slowest rank
  Seconds next = 0;   // of the slowest of the other ranks
  // Whether, in each timing, no other circle of passes that wait for each other is slower.
  std::array<bool, lanes_in<Seconds>> known{};
  // In each timing that is known, where the slowest rank is the slowest on each of its chunks, its
  // number among the ranks given.
  std::array<std::optional<std::size_t>, lanes_in<Seconds>> in_step{};

  bool all_known() const { return std::ranges::find(known, false) == known.end(); }
};

/// The slowest rank sets the pace of all but GPipe, whose first ranks run ahead of it forward and
/// its last ones backward. In an interleaved schedule it is known to, without a round more, if the
/// ranks can work in step at nearly that pace, and if a forward pass, a backward pass and their
/// messages to a neighbour and back leave time in the two steps that they have: tested on pipelines
/// like real ones.
/// `passes`: of the `chunks` of each rank that differs from the one before. `message`: seconds
/// between ranks beside which they compute.
template <class Seconds>
RoundPace<Seconds> pace_of(const Problem& problem,
                           const Rounds& rounds,
                           std::span<const PassTimeOf<Seconds>> passes,
                           std::size_t chunks,
                           double message);

/// When all rounds end, by when the few and those with a round more do.
double continued(double few, double more, double round, const Rounds& rounds);

/// When all rounds end where a rank is the slowest on each of its chunks, by the end of the few and
/// by the longest chain of passes to it that is on that rank in mid-step. That chain stays there
/// however many rounds there are; one that is longer in a few rounds goes on at the pace of the
/// others. Of 15,000 random pipelines of that kind 14,916 were exact.
double continued_in_step(double few, double chain, double round, double next, const Rounds& rounds);

/// As part of a step, what continuing it may be off by if it is interleaved: the worst of the
/// 15,000 pipelines of continued_in_step, rounded up. Nothing where all rounds are run.
double continued_error(const Problem& problem);

}  // namespace zeroplan
