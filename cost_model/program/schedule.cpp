// How many micro-batches show a rank's memory? Front door: representative_passes.
#include "cost_model/program/schedule.hpp"

#include <algorithm>

#include "cost_model/question/units.hpp"

namespace zeroplan {
namespace {

// Warm-up micro-batches of Megatron's interleaved schedule, in chunks; groups of pp micro-batches.
std::int64_t interleaved_in_flight(std::int64_t pp,
                                   std::int64_t vpp,
                                   std::int64_t rank,
                                   std::int64_t m) {
  const std::int64_t warm_up = 2 * (pp - rank - 1) + (vpp - 1) * pp;
  return std::min(warm_up + 1, m * vpp);
}

}  // namespace

std::int64_t chunks_in_flight(const Problem& problem, std::int64_t rank) {
  const std::int64_t pp = problem.layout.pp;
  const std::int64_t m = std::max<std::int64_t>(1, micro_batches(problem));
  if (pp == 1) return problem.layout.vpp;
  switch (problem.layout.schedule) {
    case Schedule::gpipe:
      return m;
    case Schedule::one_f_one_b:
      return std::min(pp - rank, m);
    case Schedule::interleaved:
      return interleaved_in_flight(pp, problem.layout.vpp, rank, m);
    // The weight-gradient half is put off, so what 1F1B frees early stays: every rank reaches stage
    // 0's peak.
    case Schedule::zb_h1:
      return std::min(pp, m);
    case Schedule::zb_h2:
      return std::min(2 * pp - 1, m);
    case Schedule::zb_v:
      return 2 * std::min(pp, m);
    case Schedule::dualpipe:
      return std::min(pp + 1, 2 * m);
  }
  return m;
}

std::int64_t representative_micro_batches(const Problem& problem, std::int64_t rank) {
  const std::int64_t all = std::max<std::int64_t>(1, micro_batches(problem));
  const std::int64_t pp = problem.layout.pp;
  if (problem.runtime.recorded) return all;  // as they ran
  // Without a pipeline one tells all; a second shows what the allocator makes of it.
  if (pp == 1) return std::min<std::int64_t>(all, 2);
  // Warm-up, two steady rounds, cool-down.
  switch (problem.layout.schedule) {
    case Schedule::gpipe:
      return all;
    case Schedule::interleaved:
      return std::min(all, round_up(4 * pp, pipeline_of(problem, all).interleaving.group));
    case Schedule::one_f_one_b:
      return std::min(all, pp - rank + 2);
    case Schedule::zb_h1:
      return std::min(all, pp + 2);
    case Schedule::zb_h2:
    case Schedule::zb_v:
      return std::min(all, 2 * pp + 1);
    case Schedule::dualpipe:
      return std::min(all, 2 * pp + 4);
  }
  return all;
}

std::vector<Pass> passes(const Problem& problem, std::int64_t rank, std::int64_t micro_batches) {
  return passes(pipeline_of(problem, micro_batches), rank);
}

std::vector<Pass> representative_passes(const Problem& problem, std::int64_t rank) {
  return passes(problem, rank, representative_micro_batches(problem, rank));
}

}  // namespace zeroplan
