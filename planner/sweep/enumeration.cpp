// Which layouts are there? Front door: Enumeration::nodes.
#include "planner/sweep/enumeration.hpp"

namespace zeroplan {
namespace {

// Fields that something else follows from: dp, the global batch, the stage split.
constexpr unsigned deriving =
    set_of({Field::micro_batch, Field::tp, Field::cp, Field::pp, Field::vpp, Field::schedule});

constexpr bool derives(Field field) {
  return (set_of({field}) & deriving) != 0;
}

}  // namespace

void Enumeration::choose(Field field, std::int64_t value) {
  set_value(problem_.layout, field, value);
  if (derives(field)) derive(space_.request, problem_);
}

void Enumeration::descend(std::size_t level, std::size_t stop, const Visit& visit) {
  // Rules of depth 0 read no field of the layout: they refuse all points or none.
  if (level == 0) {
    if (const Rule* rule = first_broken(problem_, 0)) {
      rejected_[rule->id] += leaves(0);
      return;
    }
  }
  if (level == stop) {
    level_ = level;
    visit(problem_);
    level_ = 0;
    return;
  }
  const Layout before = problem_.layout;
  for (const std::int64_t value : values(level)) {
    choose(choice_order[level], value);
    if (const Rule* rule = first_broken(problem_, level + 1)) {
      rejected_[rule->id] += leaves(level + 1);
    } else {
      descend(level + 1, stop, visit);
    }
    problem_.layout = before;
  }
  if (derives(choice_order[level])) derive(space_.request, problem_);
}

void Enumeration::points(const Layout& node, const Visit& visit) {
  problem_.layout = node;
  derive(space_.request, problem_);
  descend(node_depth, choice_order.size(), visit);
}

std::int64_t Enumeration::leaves(std::size_t level) {
  if (level == choice_order.size()) return 1;
  const Layout before = problem_.layout;
  const auto [found, added] =
      sizes_.try_emplace({level, before.tp, before.cp, before.pp, before.vpp}, 0);
  if (!added) return found->second;
  std::int64_t sum = 0;
  for (const std::int64_t value : values(level)) {
    choose(choice_order[level], value);
    sum += leaves(level + 1);
    problem_.layout = before;
  }
  if (derives(choice_order[level])) derive(space_.request, problem_);
  return sizes_[{level, before.tp, before.cp, before.pp, before.vpp}] = sum;
}

}  // namespace zeroplan
