#pragma once
// What the results that pipeline ranks send each other take, and who waits for them.

#include <vector>

#include "cost_model/pipeline/stage_time.hpp"
#include "cost_model/schedule/pipeline.hpp"

namespace zeroplan {

/// Seconds from the end of a pass until its result has reached a neighbour of the pipeline.
double message_seconds(const Problem& problem);

/// Whether a rank that has finished a pass waits until its neighbours have its result and it has
/// theirs.
bool sends_block(const Problem& problem);

/// Whether sends block in a runtime where they do unless a rank has several chunks, and another one
/// to run meanwhile: DeepSpeed (runtime/pipe/engine.py).
bool sends_blocks_in_one_chunk(const Problem& problem);

/// Adds to the passes of each rank's chunks the seconds that each of them waits where sends block:
/// forward for the chunk after it, backward for the one before.
template <class Seconds>
void add_exchanges(const Pipeline& pipeline,
                   double seconds,
                   std::vector<PassTimeOf<Seconds>>& passes) {
  const std::size_t chunks = passes.size() / static_cast<std::size_t>(pipeline.ranks);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const Place place{static_cast<std::int64_t>(i / chunks), static_cast<std::int32_t>(i % chunks)};
    if (next_place(pipeline, place)) passes[i].forward += seconds;
    if (previous_place(pipeline, place)) passes[i].input_gradient += seconds;
  }
}

}  // namespace zeroplan
