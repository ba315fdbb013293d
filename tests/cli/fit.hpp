#pragma once
// fit's answer as a document.

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"

namespace zeroplan::tests {

using Json = nlohmann::json;

inline Json fit(const std::string& arguments, int exit_code = 0) {
  const Run run = zeroplan("fit " + arguments + " --json");
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code == exit_code);
  REQUIRE(run.errors.empty());
  return Json::parse(run.output);
}

}  // namespace zeroplan::tests
