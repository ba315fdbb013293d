// Which layout is recommended? Front door: recommend.
#include "planner/recommend.hpp"

#include <limits>

namespace zeroplan {

bool leaves_layout_open(const Request& r) {
  if (r.model.layers == 0 || !has_allocator(open_problem(r))) return false;
  const LayoutSpace space = layout_space(r);
  const bool experts_open = r.model.moe && space.ep.size() > 1;
  return space.tp.size() > 1 || space.pp.size() > 1 || experts_open || space.zero.size() > 1 ||
         space.recompute.size() > 1 || !r.micro_batch;
}

bool leaves_stage_open(const Request& r) {
  const Choices& choices = choices_of(r);
  return !r.zero && choices.every_stage.size() > choices.stages.size() && r.model.layers > 0 &&
         has_allocator(open_problem(r));
}

std::optional<Recommendation> recommend(const SearchSpace& space, double tie) {
  SearchResult found = search({space}, {.shapes = 1, .front = false, .tie = tie});
  if (found.best.empty()) return std::nullopt;
  PlayedPlan fastest{found.best.front(), std::move(found.played.front())};
  PlayedPlan plan = found.simplest ? std::move(*found.simplest) : fastest;
  return Recommendation{std::move(plan), std::move(fastest)};
}

std::optional<PlayedPlan> least_memory(const SearchSpace& space) {
  constexpr std::size_t shapes = 4;  // since the allocator wastes more in some
  constexpr Bytes enough{std::numeric_limits<std::int32_t>::max() * std::int64_t{4096}};
  SearchSpace open = space;
  open.spares_buffers = true;
  open.request.cluster.gpu.memory = enough;
  const SearchResult found =
      search({open}, {.objective = Objective::headroom, .shapes = shapes, .front = false});
  std::optional<PlayedPlan> least;
  const Evaluator evaluator(question_of(space.request));
  for (const Scored& plan : found.best) {
    Estimate played = played_estimate(problem_of(space.request, plan.layout), evaluator);
    if (least && played.device() >= least->played.device()) continue;
    least = {plan, std::move(played)};
  }
  return least;
}

}  // namespace zeroplan
