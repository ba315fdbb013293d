#pragma once
// Schedules whose backward passes are whole.

#include <vector>

#include "cost_model/schedule/pipeline.hpp"

namespace zeroplan {

/// GPipe (arXiv 1811.06965), section 2; 1F1B and interleaved: Megatron-LM
/// core/pipeline_parallel/schedules.py.
std::vector<Pass> gpipe(const Pipeline& pipeline);
std::vector<Pass> one_f_one_b(const Pipeline& pipeline, std::int64_t rank);
std::vector<Pass> interleaved(const Pipeline& pipeline, std::int64_t rank);

}  // namespace zeroplan
