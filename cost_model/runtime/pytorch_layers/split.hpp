#pragma once
// How torchtitan's pipeline splits layers; what runs without a pipeline has them all.

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Layers of each chunk. Embedding and head count as one layer each, and what is left goes to the
/// first stages (torchtitan distributed/pipeline_parallel.py). Empty where a chunk would hold none.
std::vector<std::int64_t> torchtitan_split(const Problem& problem);

}  // namespace zeroplan
