// At which pace does a pipeline go on? Front door: pace_of.
#include "cost_model/pipeline/rounds.hpp"

#include <algorithm>
#include <limits>

#include "cost_model/schedule/pipeline.hpp"

namespace zeroplan {
namespace {

constexpr double rounding = 1e-9;  // of sums in another order

// The seconds of a round if each pass of a chunk took as long as on the rank where it takes
// longest. Then ranks work in step: each begins a forward and a backward pass when all others do,
// shifted by what results take to reach it.
template <class Seconds>
Seconds round_in_step(const Rounds& rounds,
                      std::span<const PassTimeOf<Seconds>> passes,
                      std::size_t chunks) {
  using std::max;
  Seconds sum = 0;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    Seconds forward = 0, backward = 0;
    for (std::size_t i = chunk; i < passes.size(); i += chunks) {
      forward = max(forward, passes[i].forward);
      backward = max(backward, passes[i].backward());
    }
    sum += forward + backward;
  }
  return static_cast<double>(rounds.length) * sum;
}

template <class Seconds>
Seconds shortest_pass(std::span<const PassTimeOf<Seconds>> chunks) {
  using std::min;
  Seconds shortest = std::numeric_limits<double>::infinity();
  for (const PassTimeOf<Seconds>& chunk : chunks) {
    shortest = min(shortest, min(chunk.forward, chunk.backward()));
  }
  return shortest;
}

}  // namespace

Rounds rounds_of(const Problem& problem) {
  const std::int64_t all = micro_batches(problem);
  const std::int64_t round =
      std::max(problem.layout.pp, pipeline_of(problem, all).interleaving.group);
  const bool splits = splits_backward(problem.layout.schedule);  // backward passes
  const std::int64_t few = (splits ? 4 : 2) * round + all % round;
  if (all <= few + round) return {.few = all};
  return {few, few + round, round, static_cast<double>(all - few) / static_cast<double>(round)};
}

template <class Seconds>
RoundPace<Seconds> pace_of(const Problem& problem,
                           const Rounds& rounds,
                           std::span<const PassTimeOf<Seconds>> passes,
                           std::size_t chunks,
                           double message) {
  constexpr double nearly = 1.05;
  constexpr double short_message = 0.5;  // of a pass
  constexpr std::size_t timings = lanes_in<Seconds>;
  RoundPace<Seconds> pace;
  if (problem.layout.schedule == Schedule::gpipe) return pace;
  Seconds shortest = 0;                        // on the slowest rank
  std::array<std::size_t, timings> slowest{};  // number of the slowest rank
  for (std::size_t first = 0; first < passes.size(); first += chunks) {
    const std::span<const PassTimeOf<Seconds>> own = passes.subspan(first, chunks);
    const Seconds round = busy_in_round(problem, rounds, own);
    const Seconds pass = shortest_pass(own);
    for (std::size_t i = 0; i < timings; ++i) {
      if (timing(round, i) <= timing(pace.round, i)) {
        timing(pace.next, i) = std::max(timing(pace.next, i), timing(round, i));
        continue;
      }
      timing(pace.next, i) = timing(pace.round, i);
      timing(pace.round, i) = timing(round, i);
      timing(shortest, i) = timing(pass, i);
      slowest[i] = first / chunks;
    }
  }
  if (problem.layout.schedule != Schedule::interleaved) return pace;
  const Seconds in_step = round_in_step(rounds, passes, chunks);
  for (std::size_t i = 0; i < timings; ++i) {
    pace.known[i] = message <= short_message * timing(shortest, i) &&
                    timing(in_step, i) <= nearly * timing(pace.round, i);
    const bool in_all = timing(in_step, i) <= (1 + rounding) * timing(pace.round, i);
    if (pace.known[i] && in_all) pace.in_step[i] = slowest[i];
  }
  return pace;
}

template RoundPace<double> pace_of(
    const Problem&, const Rounds&, std::span<const PassTimeOf<double>>, std::size_t, double);
template RoundPace<Lanes> pace_of(
    const Problem&, const Rounds&, std::span<const PassTimeOf<Lanes>>, std::size_t, double);

double continued(double few, double more, double round, const Rounds& rounds) {
  const double last = more - few;
  return few + rounds.left * (last < (1 - rounding) * round ? round : last);
}

double continued_in_step(
    double few, double chain, double round, double next, const Rounds& rounds) {
  return std::max(chain + rounds.left * round, few + rounds.left * next);
}

double continued_error(const Problem& problem) {
  const bool continued =
      problem.layout.schedule == Schedule::interleaved && rounds_of(problem).more > 0;
  return continued ? 0.006 : 0;
}

}  // namespace zeroplan
