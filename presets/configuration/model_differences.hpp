#pragma once
// What is another model about a model?

#include <string>
#include <vector>

#include "cost_model/question/model.hpp"

namespace zeroplan {

/// What `built` has otherwise than `asked`, one phrase each ("no norm of the embedding"): of all
/// that decides weights or time, whatever the names. Empty where they are the same.
std::vector<std::string> model_differences(const ModelSpec& asked, const ModelSpec& built);

}  // namespace zeroplan
