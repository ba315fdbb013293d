#pragma once
// What does an answer take for granted of Transformers' code?

#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// What its code of some models does that costs, where another kernel would not, or that is not
/// described; nothing of others, nor where other layers run.
std::vector<std::string> transformers_assumptions(const Problem& problem);

/// Who says what its layers allocate.
std::string_view transformers_source(const Problem& problem);

}  // namespace zeroplan
