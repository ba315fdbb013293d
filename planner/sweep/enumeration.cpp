// Which layouts are there? Front door: Enumeration::nodes.
#include "planner/sweep/enumeration.hpp"

namespace zeroplan {
namespace {

// Fields that dp, the global batch or the stage split follow from, and those that settings alone
// do.
constexpr unsigned deriving = set_of({Field::micro_batch, Field::tp, Field::cp, Field::pp,
                                      Field::vpp, Field::stage_split, Field::schedule});
constexpr unsigned setting = set_of({Field::recompute_layers, Field::overlap});

void follow(const Request& request, Field field, Problem& problem) {
  if ((set_of({field}) & deriving) != 0) derive(request, problem);
  if ((set_of({field}) & setting) != 0) derive_flags(request, problem);
}

}  // namespace

void Enumeration::choose(Field field, std::int64_t value) {
  set_value(problem_.layout, field, value);
  follow(space_.request, field, problem_);
}

void Enumeration::descend(std::size_t level,
                          std::size_t stop,
                          const Visit& visit,
                          const Enter& enter) {
  // Rules of depth 0 read no field of the layout: they refuse all points or none.
  if (level == 0) {
    if (const Rule* rule = first_broken(problem_, 0)) {
      rejected_[rule->id] += leaves(0);
      return;
    }
  }
  if (level == stop || level == group_depth) level_ = level;
  if (level == stop) {
    visit(problem_);
    level_ = 0;
    return;
  }
  if (level == group_depth && !enter(problem_)) return;
  const Layout before = problem_.layout;
  for (const std::int64_t value : values(level)) {
    choose(choice_order[level], value);
    if (const Rule* rule = first_broken(problem_, level + 1)) {
      rejected_[rule->id] += leaves(level + 1);
    } else {
      descend(level + 1, stop, visit, enter);
    }
    problem_.layout = before;
  }
  follow(space_.request, choice_order[level], problem_);
}

void Enumeration::points(const Layout& node, const Visit& visit, const Enter& enter) {
  problem_.layout = node;
  derive(space_.request, problem_);
  descend(node_depth, choice_order.size(), visit, enter);
}

std::int64_t Enumeration::leaves(std::size_t level) {
  if (level == choice_order.size()) return 1;
  const Layout before = problem_.layout;
  const auto [found, added] = sizes_.try_emplace(key(level), 0);
  if (!added) return found->second;
  std::int64_t sum = 0;
  for (const std::int64_t value : values(level)) {
    choose(choice_order[level], value);
    sum += leaves(level + 1);
    problem_.layout = before;
  }
  follow(space_.request, choice_order[level], problem_);
  return sizes_[key(level)] = sum;
}

}  // namespace zeroplan
