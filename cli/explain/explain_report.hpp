#pragma once
// An answer taken apart, for people, for programs and for spreadsheets.

#include <string>
#include <string_view>
#include <vector>

#include "cost_model/explain/explanation.hpp"
#include "planner/fit.hpp"

namespace zeroplan {

/// What is explained, and which part of it is wanted.
struct ExplainedAnswer {
  const FitAnswer& answer;
  const StageMemory& memory;  // of the stage
  Explanation explanation;
  std::string row;  // one of explained_rows(); empty: all

  /// The collectives of the explanation, in the same order, with their time.
  const std::vector<TimedLoad>& timed() const {
    return answer.step.stages[static_cast<std::size_t>(memory.stage)].loads;
  }

  bool wants(std::string_view name) const { return row.empty() || row == name; }
};

/// Names of the rows that can be asked for: every category, weights, communication,
/// flops, step.
std::vector<std::string> explained_rows();

/// Where each rank sits, and what its groups exchange over: text with the first of many ranks, and
/// schema zeroplan.ranks/1 and rows with all.
std::string ranks_text(const Problem& problem);
std::string ranks_json(const Problem& problem);
std::string ranks_csv(const Problem& problem);

/// Symbols, then each row as a sum of tensors, each with its formula and the numbers put in, and
/// the source of the row; `quiet`: what is explained alone.
std::string explain_text(const ExplainedAnswer& answer, bool quiet);

/// Schema zeroplan.explain/1.
std::string explain_json(const ExplainedAnswer& answer);

/// One line a tensor, or a term of it where it is a sum: bytes add up to the rows of fit.
std::string explain_csv(const ExplainedAnswer& answer);

}  // namespace zeroplan
