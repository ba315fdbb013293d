// Which layouts are there? Front doors: Enumeration::all, Enumeration::below.
#include "planner/sweep/enumeration.hpp"

#include <iterator>

namespace zeroplan {
namespace {

void add(const Rejections& more, Rejections& sum) {
  for (const auto& [rule, count] : more) sum[rule] += count;
}

// Fields that dp, the global batch or the stage split follow from, and those that settings alone
// do.
constexpr unsigned deriving = set_of({Field::micro_batch, Field::tp, Field::cp, Field::pp,
                                      Field::vpp, Field::stage_split, Field::schedule});
constexpr unsigned setting =
    set_of({Field::sequence_parallel, Field::loss_chunks, Field::recompute_modules,
            Field::recompute_layers, Field::knobs});

// Fields that the choices after them depend on.
constexpr unsigned deciding = set_of(
    {Field::tp, Field::cp, Field::pp, Field::vpp, Field::recompute, Field::zero, Field::offload});

void follow(const Request& request, Field field, Problem& problem) {
  if ((set_of({field}) & deriving) != 0) derive(request, problem);
  if ((set_of({field}) & setting) != 0) derive_flags(request, problem);
}

}  // namespace

Values Enumeration::values(std::size_t level) {
  const Layout& l = problem_.layout;
  switch (const Field field = choice_order[level]) {
    case Field::stage_split:
      return remembered(level, l.pp, l.vpp);
    case Field::hsdp:
      return remembered(level, l.dp, 0);
    default:
      return choices(space_, field, problem_);
  }
}

const Values& Enumeration::remembered(std::size_t level, std::int64_t one, std::int64_t other) {
  const auto [found, added] = values_.try_emplace({static_cast<std::int64_t>(level), one, other});
  if (added) found->second = choices(space_, choice_order[level], problem_);
  return found->second;
}

void Enumeration::choose(Field field, std::int64_t value) {
  set_value(problem_.layout, field, value);
  follow(space_.request, field, problem_);
}

void Enumeration::descend(std::size_t level, std::size_t to, const Visitor& visitor) {
  level_ = level;
  if (level == to) {
    visitor.visit(problem_);
    return;
  }
  if (visitor.enter && level <= family_depth && !visitor.enter(level, problem_)) return;
  if (level == group_depth && to == point_depth) return visit_families(visitor);
  const Layout before = problem_.layout;
  for (const std::int64_t value : values(level)) {
    choose(choice_order[level], value);
    if (const Rule* rule = first_broken(problem_, level + 1)) {
      rejected_[rule->id] += leaves(level + 1);
    } else {
      descend(level + 1, to, visitor);
    }
    problem_.layout = before;
  }
  follow(space_.request, choice_order[level], problem_);
}

void Enumeration::visit_families(const Visitor& visitor) {
  const Families& below = families();
  add(below.rejected, rejected_);
  const Sharding before = sharding_of(problem_.layout);
  const auto shard_by = [&](const Sharding& sharding) {
    set_sharding(problem_.layout, sharding);
    derive_flags(space_.request, problem_);
  };
  for (const Families::Family& family : below.list) {
    shard_by(family.start);
    level_ = family_depth;
    family_ = &family;
    const bool entered = !visitor.enter || visitor.enter(family_depth, problem_);
    family_ = nullptr;
    if (!entered) continue;
    add(family.rejected, rejected_);
    level_ = point_depth;
    for (const Sharding& sharding : family.legal) {
      shard_by(sharding);
      visitor.visit(problem_);
    }
  }
  shard_by(before);
  if (visitor.leave_group) visitor.leave_group(problem_);
}

const Families& Enumeration::families() {
  const Layout& l = problem_.layout;
  const Numbers<6> shape{l.micro_batch, l.tp, l.cp, l.pp, l.ep, l.etp};
  if (families_of_ == shape) return families_;
  families_of_ = shape;
  families_ = {};
  families_.rejected = refused(group_depth, family_depth, [&](const Problem& family) {
    Families::Family& own =
        families_.list.emplace_back(sharding_of(family.layout), leaves(family_depth));
    own.rejected = refused(family_depth, point_depth, [&](const Problem& point) {
      own.legal.push_back(sharding_of(point.layout));
    });
  });
  level_ = group_depth;
  return families_;
}

std::int64_t Enumeration::size() {
  if (family_ != nullptr) return family_->points;
  return leaves(level_);
}

Rejections Enumeration::refused(std::size_t from, std::size_t to, const Visit& visit) {
  Rejections own;
  std::swap(own, rejected_);
  descend(from, to, {visit});
  std::swap(own, rejected_);
  return own;
}

void Enumeration::walk(std::size_t from, std::size_t to, const Visitor& visitor) {
  // Rules of depth 0 read no field of the layout: they refuse all points or none.
  const Rule* rule = from == 0 ? first_broken(problem_, 0) : nullptr;
  if (rule) {
    rejected_[rule->id] += leaves(0);
  } else {
    descend(from, to, visitor);
  }
  level_ = 0;
}

void Enumeration::below(const Layout& start,
                        std::size_t from,
                        std::size_t to,
                        const Visitor& visitor) {
  problem_.layout = start;
  derive(space_.request, problem_);
  walk(from, to, visitor);
}

std::int64_t Enumeration::leaves(std::size_t level) {
  if (level == choice_order.size()) return 1;
  // Below a shape sizes are kept where they differ, and found again where they are as many times
  // the next one's: what is kept takes longer to write than to find.
  const bool all_alike = (set_of({choice_order[level]}) & deciding) == 0;
  const bool kept = !all_alike || level <= shape_depth;
  if (kept) {
    const auto found = sizes_.find(key(level));
    if (found != sizes_.end()) return found->second;
  }
  const Layout before = problem_.layout;
  std::int64_t sum = 0;
  const Values open = values(level);
  for (const std::int64_t value : open) {
    choose(choice_order[level], value);
    sum += leaves(level + 1) * (all_alike ? std::ssize(open) : 1);
    problem_.layout = before;
    if (all_alike) break;
  }
  follow(space_.request, choice_order[level], problem_);
  if (kept) sizes_[key(level)] = sum;
  return sum;
}

}  // namespace zeroplan
