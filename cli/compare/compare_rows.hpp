#pragma once
// Private to the comparison and its page: its rows, taken from two documents of fit.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace zeroplan {

struct CompareRow {
  std::string section;  // layout, memory, communication, step
  std::string name;
  std::string unit;             // bytes, seconds; empty: a plain value
  nlohmann::ordered_json a, b;  // null: this side has none

  /// b - a; null unless both are numbers.
  nlohmann::ordered_json difference() const;
};

/// Rows of two documents zeroplan.fit/1: what differs of question and layout; every category of the
/// worst stage; bytes sent in a step by group; every number of the step.
std::vector<CompareRow> compare_rows(const nlohmann::ordered_json& a,
                                     const nlohmann::ordered_json& b);

}  // namespace zeroplan
