#pragma once
// The order in which a pipeline rank runs the passes of its micro-batches.

#include <cstdint>
#include <vector>

#include "cost_model/problem.hpp"

namespace zeroplan {

struct Pass {
  bool backward = false;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  friend bool operator==(const Pass&, const Pass&) = default;
};

/// Every pass of rank `rank` in one step of `micro_batches` micro-batches, in order. Without a
/// pipeline each micro-batch goes forward and back. Zero-bubble schedules and DualPipe are not
/// among them yet: empty. Source: Megatron-LM core/pipeline_parallel/schedules.py (1F1B;
/// interleaved: groups of microbatch_group_size micro-batches a chunk); GPipe (arXiv 1811.06965),
/// section 2.
std::vector<Pass> passes(const Problem& problem, std::int64_t rank, std::int64_t micro_batches);

/// Micro-batches a chunk of an interleaved schedule runs before the next chunk does.
std::int64_t interleaved_group(const Problem& problem);

/// The passes of rank `rank` in a step of only as many micro-batches as it takes until its memory
/// repeats.
std::vector<Pass> representative_passes(const Problem& problem, std::int64_t rank);

}  // namespace zeroplan
