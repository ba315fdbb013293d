// How many FLOPs is a recorded step? Front door: recorded_flop_terms.
#include "cost_model/kernel/recorded_flops.hpp"

#include <algorithm>

#include "cost_model/kernel/attention.hpp"
#include "cost_model/kernel/gemm.hpp"
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
  void operator()(const ProductShape& s) const {
    sums.products += flops(Gemm{.m = s.m, .n = s.n, .k = s.k, .groups = s.groups});
  }
  void operator()(const ScoreShape& s) const {
    const double flops = attention_flops({.batch = s.batch,
                                          .queries = s.queries,
                                          .keys = s.keys,
                                          .heads = s.heads,
                                          .kv_heads = s.kv_heads,
                                          .qk_width = s.qk_width,
                                          .v_width = s.v_width,
                                          .causal = s.causal && count == ScoreCount::causal});
    if (!s.backward) sums.scores += flops;
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
