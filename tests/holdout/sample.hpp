#pragma once
// Measured steps as a fit sees them: the question, the answer, and the group that is held out with
// it.

#include <string>
#include <vector>

#include "cost_model/question/problem.hpp"
#include "tests/accuracy/row.hpp"

namespace zeroplan::holdout {

struct Sample {
  std::string id;
  std::string family;  // of the corpus
  std::string group;   // runs of one publication, cluster, document or model: held out together;
                       // empty: not fitted on
  Problem problem;
  double measured = 0;  // seconds of a step
};

/// The rows with a step time that can be predicted, and that are not recalled.
std::vector<Sample> samples_of(const std::vector<accuracy::Row>& rows);

/// Seconds that the law predicts with these constants.
double predicted_seconds(const Sample& sample, const TimeConstants& constants);

}  // namespace zeroplan::holdout
