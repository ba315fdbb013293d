// Does the answer agree with what was printed? Front door: check.
#include <fmt/format.h>

#include <cmath>

#include "tests/papers/case.hpp"

namespace zeroplan::papers {
namespace {

bool close(double value, double expected, double tolerance) {
  return std::abs(value - expected) <= tolerance * std::abs(expected);
}

}  // namespace

Result check(const Json& row) {
  Answer given = Skip{};
  try {
    given = answer(row);
  } catch (const Json::exception& error) {
    return {Outcome::failed, fmt::format("inputs: {}", error.what())};
  }
  if (const auto* skip = std::get_if<Skip>(&given)) return {Outcome::skipped, skip->reason};
  const double value = std::get<double>(given);
  const Json& expect = row.at("expect");
  const auto printed = expect.at("value").get<double>();
  const auto tolerance = expect.at("tolerance_rel").get<double>();
  const bool agrees = close(value, printed, tolerance);
  if (!row.value("published_inconsistent", false)) {
    if (agrees) return {Outcome::passed, ""};
    return {Outcome::failed, fmt::format("{} is {:.12g}, published {:.12g} {}",
                                         expect.at("quantity").get<std::string>(), value, printed,
                                         expect.at("unit").get<std::string>())};
  }
  constexpr double rounding = 1e-9;
  if (agrees)
    return {Outcome::failed,
            fmt::format("reproduces {:.12g}, which contradicts the paper's own figures", printed)};
  if (close(value, row.at("calc").get<double>(), rounding)) return {Outcome::passed, ""};
  return {Outcome::failed, fmt::format("is {:.12g}, consistent would be {:.12g}", value,
                                       row.at("calc").get<double>())};
}

}  // namespace zeroplan::papers
