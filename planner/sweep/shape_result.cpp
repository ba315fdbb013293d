// What is kept of a shape's points? Front door: ShapeFindings.
#include "planner/sweep/shape_result.hpp"

#include <algorithm>
#include <cmath>

namespace zeroplan {
namespace {

// Needing as much as one that did not fit when it was played.
bool is_refused(const Scored& plan, std::span<const Scored> played) {
  return std::ranges::any_of(played, [&](const Scored& refused) {
    return refused.layout.micro_batch == plan.layout.micro_batch &&
           refused.layout.recompute == plan.layout.recompute && refused.device <= plan.device;
  });
}

}  // namespace

void ShapeFindings::reject_unseen(bool large, std::int64_t points) {
  result_.rejected[large ? bound_too_large : bound_too_slow] += points;
  result_.untimed |= !large;
}

bool ShapeFindings::cut(const ShapeBound& bound, std::int64_t points) {
  if (cutoff_.exhaustive) return false;
  const bool large = incumbent_.is_large(bound.device);
  if (!large && !incumbent_.hopeless(bound)) return false;
  reject_unseen(large, points);
  return true;
}

void ShapeFindings::keep(Scored scored, double tokens) {
  if (!std::isfinite(scored.seconds)) {
    ++result_.rejected[no_network];
    return;
  }
  ++result_.feasible;
  scored.seconds_per_token = scored.seconds / tokens;
  incumbent_.front().add(scored);
  if (scored.seconds_per_token > cutoff_.slowest) return;
  const double value = objective_value(cutoff_.objective, scored);
  if (value > cutoff_.threshold) return incumbent_.leave_out(value);
  const bool worse = result_.best && !better(cutoff_.objective, scored, *result_.best);
  if (worse || is_refused(scored, refused_)) return;
  result_.best = scored;
  incumbent_.lower(value);
}

void ShapeFindings::keep_least(const Scored& scored) {
  if (!result_.least || scored.device < result_.least->device) result_.least = scored;
}

ShapeResult ShapeFindings::take(const Rejections& by_rules) {
  result_.front = incumbent_.front().plans();
  result_.beyond = incumbent_.beyond();
  for (const auto& [rule, count] : by_rules) result_.rejected[rule] += count;
  return std::move(result_);
}

}  // namespace zeroplan
