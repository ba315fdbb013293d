// How many FLOPs is a recorded step? Front door: recorded_flop_terms.
#include "cost_model/kernel/recorded_flops.hpp"

#include <algorithm>

#include "cost_model/kernel/operator_time.hpp"
#include "cost_model/program/recorded.hpp"

namespace zeroplan {
namespace {

struct Sums {
  double products = 0;
  double scores = 0;  // of forward kernels
};

struct Adding {
  Sums& sums;
  ScoreCount count;

  void operator()(Bytes) const {}
  void operator()(const ProductShape& s) const { sums.products += flops(gemm_of(s)); }
  void operator()(const ScoreShape& s) const {
    AttentionShape shape = attention_of(s);
    shape.causal = s.causal && count == ScoreCount::causal;
    if (!s.backward) sums.scores += attention_flops(shape);
  }
};

}  // namespace

std::vector<FlopTerm> recorded_flop_terms(const Problem& problem, ScoreCount count) {
  const RecordedProgram& recorded = *problem.runtime.recorded;
  Sums forward, backward;
  for (const std::vector<Event>& pass : recorded.passes) {
    for (const Event& event : pass) {
      if (!event.operates()) continue;
      const Operator& op = recorded.operators[static_cast<std::size_t>(event.index)];
      std::visit(Adding{op.gradient ? backward : forward, count}, op.work);
    }
  }
  const double samples = static_cast<double>(problem.training.global_batch) /
                         static_cast<double>(problem.cluster.gpus);
  const double again = std::max(0.0, backward.products - 2 * forward.products);
  return {{"matrix products", 1, forward.products / samples, again / samples},
          {"attention", 1, forward.scores / samples, backward.scores / samples}};
}

}  // namespace zeroplan
