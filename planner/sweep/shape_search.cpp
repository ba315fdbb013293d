// What does a thread of a search do with a shape? Front doors: ShapeSearch::bound,
// ShapeSearch::open.
#include "planner/sweep/shape_search.hpp"

#include <algorithm>

namespace zeroplan {

// More GPUs are another fabric: what shares it with them is all different.
ShapeSearch::ShapeSearch(const std::vector<SearchSpace>& spaces) {
  const SearchSpace* known = nullptr;
  for (const SearchSpace& space : spaces) {
    if (!known || known->request.cluster.fabric.shared != space.request.cluster.fabric.shared) {
      evaluators_.emplace_back(question_of(space.request));
      known = &space;
    }
    tools_.emplace_back(space, evaluators_.back());
  }
}

ShapeBound ShapeSearch::bound(std::size_t space, const Layout& shape, bool weighs_memory) {
  SpaceTools& tools = tools_[space];
  tools.evaluator.trim();
  std::optional<ShapeBound> least;
  const auto lower = [&](ShapeBound bound) {
    if (!least) least = bound;
    least->seconds_per_token = std::min(least->seconds_per_token, bound.seconds_per_token);
    least->device = std::min(least->device, bound.device);
    least->complexity = std::min(least->complexity, bound.complexity);
  };
  const auto at_pass = [&](const Problem& p) {
    lower({tools.bounds.pass_time(p) / tokens_of_step(p),
           weighs_memory ? tools.bounds.pass_memory(p) : tools.bounds.states_memory(p),
           tools.simplicity(p, pass_depth).rank()});
  };
  tools.enumeration.below(shape, shape_depth, pass_depth, {at_pass});
  return least.value_or(ShapeBound{});
}

std::optional<Estimate> ShapeSearch::played(std::size_t space, const Scored& plan) const {
  return played_where_it_fits(problem_of(tools_[space].space.request, plan.layout),
                              tools_[space].evaluator);
}

std::int64_t ShapeSearch::complexity(std::size_t space, const Scored& plan) const {
  const SpaceTools& tools = tools_[space];
  return tools.simplicity(problem_of(tools.space.request, plan.layout)).rank();
}

ShapeResult ShapeSearch::open(std::size_t space,
                              const Layout& shape,
                              const Cutoff& cutoff,
                              Bytes least,
                              std::span<const Scored> refused) {
  SpaceTools& tools = tools_[space];
  tools.evaluator.trim();
  return open_shape(tools, shape, cutoff, least, refused);
}

}  // namespace zeroplan
