// Which micro-batches of a plan's step are traced? Front door: traced_plan.
#include "cli/validate/traced_plan.hpp"

#include <algorithm>

#include "cost_model/answer/estimate.hpp"

namespace zeroplan {
namespace {

bool needs_the_same(const Problem& one, const Problem& other) {
  const Estimate a = estimate(one, Evaluator(one));
  const Estimate b = estimate(other, Evaluator(other));
  return std::ranges::equal(a.stages, b.stages, [](const StageMemory& x, const StageMemory& y) {
    return x.memory.allocated() == y.memory.allocated();
  });
}

}  // namespace

Problem traced_plan(const Problem& plan) {
  const std::int64_t enough = 3 * plan.layout.pp;
  if (micro_batches(plan) <= enough) return plan;
  Problem shorter = plan;
  shorter.training.global_batch = enough * plan.layout.micro_batch * plan.layout.dp;
  return needs_the_same(plan, shorter) ? shorter : plan;
}

}  // namespace zeroplan
