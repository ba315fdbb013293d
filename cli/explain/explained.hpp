#pragma once
// From the options of explain to what it shows.

#include "cli/explain/explain_report.hpp"
#include "cli/request/arguments.hpp"

namespace zeroplan {

struct Explained {
  FitAnswer answer;
  std::size_t stage = 0;
  Explanation explanation;
  std::string row;  // empty: all

  /// For the reports. Valid as long as this is.
  ExplainedAnswer view() const { return {answer, answer.estimate.stages[stage], explanation, row}; }
};

/// Throws InputError where there is no such row or stage, or nothing can be executed.
Explained explained(const ExplainArguments& arguments);

}  // namespace zeroplan
