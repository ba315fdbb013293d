#pragma once
// What the cost model says to a row, beside what was measured.

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "cost_model/answer/estimate.hpp"
#include "tests/accuracy/row.hpp"

namespace zeroplan::accuracy {

/// One figure of one instrument, bytes or seconds.
struct Result {
  std::string id;  // of the row; "#reserved" follows where a row has both figures
  std::string family, runtime, instrument;
  double predicted = 0;
  double measured = 0;
  double half_band = 0;  // of the answer: 95 of 100 measured values are to lie so near
  double mfu = 0;        // of a measured step, with causal attention

  /// 0.01: one percent too high.
  double error() const { return predicted / measured - 1; }
  bool in_band() const { return std::abs(measured - predicted) <= half_band; }
};

/// The verdict on a row that says only whether the run fitted.
struct Judgement {
  std::string id, family;
  Outcome outcome = Outcome::ran;
  Verdict verdict = Verdict::fits;
  Bytes needed, at_most, capacity;  // of the device: predicted, end of the band, what there is

  /// `tight` is taken as an answer that the run fits.
  bool right() const { return (outcome == Outcome::ran) == (verdict != Verdict::does_not_fit); }
};

struct Prediction {
  std::vector<Result> memory;
  std::optional<Judgement> judgement;  // where there are no figures of memory
  std::optional<Result> step;          // seconds of an optimizer step
};

/// Seconds of a step that the row measured, or that follow from what it did. The row has one of the
/// figures of a throughput.
double measured_step_seconds(const Row& row, const Problem& problem);

/// Throws Skip.
Prediction predict(const Row& row);

}  // namespace zeroplan::accuracy
