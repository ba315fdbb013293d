#pragma once
// What a schedule orders: ranks, model chunks and micro-batches, and where a chunk stands.

#include <compare>
#include <cstdint>
#include <optional>

#include "cost_model/question/numbers.hpp"
#include "cost_model/question/problem.hpp"
#include "cost_model/schedule/pass.hpp"

namespace zeroplan {

/// How the interleaved schedule goes round the chunks of a rank.
struct Interleaving {
  std::int64_t group = 1;  // micro-batches a chunk runs before the next does
  std::int64_t ahead = 0;  // passes of the warm-up beyond those that the ranks behind ask for
  friend auto operator<=>(const Interleaving&, const Interleaving&) = default;
};

struct Pipeline {
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t ranks = 1;          // p
  std::int64_t chunks = 1;         // v: model chunks of a rank, of both directions in DualPipe
  std::int64_t micro_batches = 1;  // m
  Interleaving interleaving;
  friend auto operator<=>(const Pipeline&, const Pipeline&) = default;
};

/// All that tells pipelines apart.
Numbers<6> numbers_of(const Pipeline& pipeline);

/// The problem's pipeline, in a step of `micro_batches` micro-batches.
Pipeline pipeline_of(const Problem& problem, std::int64_t micro_batches);

/// That of PyTorch's interleaved schedule (torch/distributed/pipelining/schedules.py,
/// ScheduleInterleaved1F1B): as many rounds as there are whole multiples of pp, all alike. Where
/// they cannot be, which PyTorch refuses of this schedule, but not of those simulated by it, fewer.
Interleaving even_rounds(const Problem& problem);

/// A place in the chain of model chunks that a micro-batch crosses.
struct Place {
  std::int64_t rank = 0;
  std::int32_t chunk = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// The chunk that a micro-batch crosses after this one; none after the last. Chunks go round the
/// ranks; in ZB-V the second half comes back; in DualPipe chunk 0 goes up the ranks and chunk 1
/// down. Source: Qi et al. (arXiv 2401.10241), section 6; deepseek-ai/DualPipe @bb214e8,
/// dualpipe/dualpipe.py.
std::optional<Place> next_place(const Pipeline& pipeline, const Place& place);

/// The one before; none before the first.
std::optional<Place> previous_place(const Pipeline& pipeline, const Place& place);

}  // namespace zeroplan
