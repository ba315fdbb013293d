#pragma once
// Errors of a whole corpus, by family.

#include <map>
#include <string>
#include <vector>

#include "tests/accuracy/prediction.hpp"

namespace zeroplan::accuracy {

/// Errors of one family, runtime and instrument, as fractions.
struct Family {
  std::string family, runtime, instrument;
  std::size_t n = 0;
  double mean = 0, median = 0, p95 = 0, max = 0;  // of absolute errors
  double bias = 0;                                // mean of signed errors
  std::size_t in_band = 0;                        // of n
  std::size_t tight = 0, verdicts_wrong = 0;      // of the family's rows with a verdict
};

struct Report {
  std::size_t rows = 0;
  std::size_t predicted = 0;                   // rows with a result or a verdict
  std::map<std::string, std::size_t> skipped;  // rows by reason
  std::vector<Result> memory, steps;
  std::vector<Judgement> judgements;
  std::vector<Family> memory_families, step_families;  // by name

  std::size_t skipped_rows() const { return rows - predicted; }
  std::size_t right_verdicts() const;
  std::size_t wrong_verdicts() const { return judgements.size() - right_verdicts(); }
};

/// Predicts every row.
Report assess(const std::vector<Row>& rows);

}  // namespace zeroplan::accuracy
