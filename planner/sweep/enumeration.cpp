// Which layouts are there? Front doors: Enumeration::all, Enumeration::below.
#include "planner/sweep/enumeration.hpp"

namespace zeroplan {
namespace {

// Fields that dp, the global batch or the stage split follow from, and those that settings alone
// do.
constexpr unsigned deriving = set_of({Field::micro_batch, Field::tp, Field::cp, Field::pp,
                                      Field::vpp, Field::stage_split, Field::schedule});
constexpr unsigned setting =
    set_of({Field::recompute_modules, Field::recompute_layers, Field::knobs});

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
                          std::size_t to,
                          const Visit& visit,
                          const Enter& enter) {
  level_ = level;
  if (level == to) {
    visit(problem_);
    return;
  }
  if (enter && level <= family_depth && !enter(level, problem_)) return;
  const Layout before = problem_.layout;
  for (const std::int64_t value : values(level)) {
    choose(choice_order[level], value);
    if (const Rule* rule = first_broken(problem_, level + 1)) {
      rejected_[rule->id] += leaves(level + 1);
    } else {
      descend(level + 1, to, visit, enter);
    }
    problem_.layout = before;
  }
  follow(space_.request, choice_order[level], problem_);
}

void Enumeration::walk(std::size_t from, std::size_t to, const Visit& visit, const Enter& enter) {
  // Rules of depth 0 read no field of the layout: they refuse all points or none.
  const Rule* rule = from == 0 ? first_broken(problem_, 0) : nullptr;
  if (rule) {
    rejected_[rule->id] += leaves(0);
  } else {
    descend(from, to, visit, enter);
  }
  level_ = 0;
}

void Enumeration::below(
    const Layout& start, std::size_t from, std::size_t to, const Visit& visit, const Enter& enter) {
  problem_.layout = start;
  derive(space_.request, problem_);
  walk(from, to, visit, enter);
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
