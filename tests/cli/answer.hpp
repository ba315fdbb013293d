#pragma once
// What any command answers as a document, and what it refuses.

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"

namespace zeroplan::tests {

/// Whether its plan fits or not.
inline nlohmann::json answer(const std::string& arguments) {
  const Run run = zeroplan(arguments + " --json");
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code <= 1);
  return nlohmann::json::parse(run.output);
}

/// With these words, and nothing on standard output.
inline void require_refused(const std::string& arguments, const std::string& words) {
  const Run run = zeroplan(arguments);
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code == 2);
  REQUIRE(run.output.empty());
  REQUIRE_THAT(run.errors, ContainsSubstring(words));
}

}  // namespace zeroplan::tests
