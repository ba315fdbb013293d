#pragma once
// What the cost model says a rank of the engine does, in the words in which a run is reported.

#include "cost_model/remember/evaluator.hpp"
#include "validator/run.hpp"

namespace zeroplan::engine {

struct RankPrediction {
  Ledger::Peak peak;
  std::vector<GroupTraffic> traffic;  // groups of more than one rank
};

/// What the cost model says of any rank of pipeline stage `stage`. Assumes a legal problem of
/// runtime zeroplan.
RankPrediction predicted_rank(const Problem& problem,
                              const Evaluator& evaluator,
                              std::int64_t stage);

/// What the cost model says of the seconds of a step of any rank of pipeline stage `stage`, on the
/// cluster of the problem: those of its products and of each kind of call by themselves, and what
/// of calls nothing hides. Assumes a legal problem of runtime zeroplan.
StepSeconds predicted_seconds(const Problem& problem,
                              const Evaluator& evaluator,
                              std::int64_t stage);

}  // namespace zeroplan::engine
