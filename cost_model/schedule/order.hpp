#pragma once
// The order in which a pipeline rank runs the passes of its micro-batches.

#include <vector>

#include "cost_model/schedule/pipeline.hpp"

namespace zeroplan {

/// Every pass of rank `rank` in one step, in order. Without a pipeline each micro-batch goes
/// forward and back. Source: Megatron-LM core/pipeline_parallel/schedules.py (1F1B; interleaved:
/// groups of `group` micro-batches a chunk); GPipe (arXiv 1811.06965), section 2; Qi et al. (arXiv
/// 2401.10241) for ZB-H1 and ZB-H2; PyTorch torch/distributed/pipelining/schedules.py
/// ScheduleZBVZeroBubble for ZB-V; deepseek-ai/DualPipe @bb214e8 dualpipe/dualpipe.py. DualPipe
/// needs an even number of ranks, and an even one of micro-batches, at least twice as many: half go
/// up the ranks through chunk 0, the others down through chunk 1.
std::vector<Pass> passes(const Pipeline& pipeline, std::int64_t rank);

/// What a pass waits for: an output (`kind` forward), or an input gradient (`kind` input_gradient),
/// which a whole backward pass makes too.
struct Needed {
  Place place;
  PassKind kind = PassKind::forward;
  std::int32_t micro_batch = 0;
};

/// A forward pass needs the chunk before; a backward pass its own forward pass and the chunk
/// behind; a weight gradient its own input gradient.
std::vector<Needed> needs(const Pipeline& pipeline, std::int64_t rank, const Pass& pass);

}  // namespace zeroplan
