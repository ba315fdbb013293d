#pragma once
// One published number: what it was computed from, what was printed, and what zeroplan answers.

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

namespace zeroplan::papers {

using Json = nlohmann::json;

struct Skip {
  std::string reason;
};

/// zeroplan's answer to a case in the unit of its printed value, or why it has none.
using Answer = std::variant<double, Skip>;

/// Answers a row of paper_cases.jsonl whose quantity is a parameter count, model states or a grid
/// of ranks; every other quantity is skipped with the reason. Throws when an input it needs is
/// missing.
Answer answer(const Json& row);

enum class Outcome { passed, failed, skipped };

struct Result {
  Outcome outcome;
  std::string text;  // for a failure what differs, for a skip the reason
};

/// Compares the answer with the printed value within the row's relative tolerance. A row flagged
/// published_inconsistent passes only when zeroplan does NOT reproduce the printed value but does
/// reproduce the consistent one the row carries.
Result check(const Json& row);

}  // namespace zeroplan::papers
