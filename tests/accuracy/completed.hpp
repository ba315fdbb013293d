#pragma once
// What completes a row of NVIDIA's tables (megatron-bridge's docs/performance-summary.md): the
// settings of the recipe that made it, under their names there.

#include <string>
#include <vector>

#include "cost_model/question/problem.hpp"
#include "presets/runtime.hpp"
#include "tests/accuracy/row.hpp"

namespace zeroplan::accuracy {

/// Puts what the recipe says of the row's own fields into them: precision, optimizer, recompute,
/// experts.
void complete_fields(Row& row);

/// Settings of Megatron-Core that the recipe sets, or that its container brings.
std::vector<Override> completed_settings(const Row& row);

/// "nvidia-blackwell-ultra-mxfp8-experts": where completed rows of one GPU generation, precision
/// and kind of model stand. Other rows keep the family that they name.
std::string family_of(const Row& row, const Problem& problem);

}  // namespace zeroplan::accuracy
