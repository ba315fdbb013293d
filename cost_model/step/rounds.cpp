// At which pace does a pipeline go on? Front door: pace_of.
#include "cost_model/step/rounds.hpp"

#include <algorithm>
#include <limits>

#include "cost_model/schedule/pipeline.hpp"

namespace zeroplan {
namespace {

constexpr double rounding = 1e-9;  // of sums in another order

// Seconds of a round if each pass of a chunk took as long as on the rank where it takes longest.
// Then ranks work in step: each begins a forward and a backward pass when all others do, shifted by
// what results take to reach it.
double round_in_step(const Rounds& rounds, std::span<const PassTime> passes, std::size_t chunks) {
  double sum = 0;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    double forward = 0, backward = 0;
    for (std::size_t i = chunk; i < passes.size(); i += chunks) {
      forward = std::max(forward, passes[i].forward);
      backward = std::max(backward, passes[i].backward());
    }
    sum += forward + backward;
  }
  return static_cast<double>(rounds.length) * sum;
}

double shortest_pass(std::span<const PassTime> chunks) {
  double shortest = std::numeric_limits<double>::infinity();
  for (const PassTime& chunk : chunks) {
    shortest = std::min({shortest, chunk.forward, chunk.backward()});
  }
  return shortest;
}

}  // namespace

Rounds rounds_of(const Problem& problem) {
  const std::int64_t all = micro_batches(problem);
  const std::int64_t round = std::max(problem.layout.pp, pipeline_of(problem, all).group);
  const bool splits = problem.layout.schedule > Schedule::interleaved;  // backward passes
  const std::int64_t few = (splits ? 4 : 2) * round + all % round;
  if (all <= few + round) return {.few = all};
  return {few, few + round, round, static_cast<double>(all - few) / static_cast<double>(round)};
}

double busy_in_round(const Problem& problem,
                     const Rounds& rounds,
                     std::span<const PassTime> chunks) {
  double each = 0;
  for (const PassTime& chunk : chunks) each += chunk.forward + chunk.backward();
  const bool one_chunk_each = problem.layout.schedule == Schedule::dualpipe;
  return static_cast<double>(rounds.length) * each / (one_chunk_each ? 2 : 1);
}

Pace pace_of(const Problem& problem,
             const Rounds& rounds,
             std::span<const PassTime> passes,
             std::size_t chunks,
             double message) {
  constexpr double nearly = 1.05;
  constexpr double short_message = 0.5;  // of a pass
  if (problem.layout.schedule == Schedule::gpipe) return {};
  Pace pace;
  double shortest = 0;  // on the slowest rank
  for (std::size_t first = 0; first < passes.size(); first += chunks) {
    const std::span<const PassTime> own = passes.subspan(first, chunks);
    const double round = busy_in_round(problem, rounds, own);
    if (round <= pace.round) continue;
    pace.round = round;
    shortest = shortest_pass(own);
  }
  pace.known = problem.layout.schedule == Schedule::interleaved &&
               message <= short_message * shortest &&
               round_in_step(rounds, passes, chunks) <= nearly * pace.round;
  return pace;
}

double continued(double few, double more, double round, const Rounds& rounds) {
  const double last = more - few;
  return few + rounds.left * (last < (1 - rounding) * round ? round : last);
}

}  // namespace zeroplan
