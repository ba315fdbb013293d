#pragma once
// The points of a search space, one after another and never stored: a walk down the fields in
// choice_order that turns back where a rule says no.

#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>

#include "cost_model/question/numbers.hpp"
#include "cost_model/remember/sharding.hpp"
#include "planner/sweep/choices.hpp"

namespace zeroplan {

/// How many points each rule refused: a point counts under the first rule that it breaks.
using Rejections = std::map<std::string_view, std::int64_t>;

/// How many fields of choice_order are chosen of a shape: which rank does what; of a pass: what
/// its blocks are and where they stand; of a policy: whether and how recompute is on; of a node:
/// what recompute repeats, but not in how many layers; of a group of points, whose passes are all
/// the same; and of a family, whose points differ in HSDP and knobs alone.
inline constexpr std::size_t shape_depth = 7;
inline constexpr std::size_t pass_depth = 11;
inline constexpr std::size_t policy_depth = 12;
inline constexpr std::size_t node_depth = 13;
inline constexpr std::size_t group_depth = 14;
inline constexpr std::size_t family_depth = 16;
inline constexpr std::size_t point_depth = choice_order.size();

/// All that is below a group of points. It is the same below every group of a shape: neither the
/// choices nor the rules after group_depth read what a shape leaves open.
struct Families {
  struct Family {
    Sharding start;           // before HSDP and knobs are chosen
    std::int64_t points = 0;  // legal or not
    std::vector<Sharding> legal = {};
    Rejections rejected = {};  // points that are not legal
  };
  std::vector<Family> list;
  Rejections rejected;  // before a family is reached
};

class Enumeration {
 public:
  explicit Enumeration(const SearchSpace& space)
      : space_(space), problem_(open_problem(space.request)) {}

  using Visit = std::function<void(const Problem&)>;
  struct Visitor {
    Visit visit;
    /// Whether to go on below the first `depth` fields; asked down to family_depth.
    std::function<bool(std::size_t depth, const Problem&)> enter = {};
    /// Called after the points of a group.
    std::function<void(const Problem&)> leave_group = {};
  };

  /// Visits every legal choice of the first `depth` fields.
  void all(std::size_t depth, const Visit& visit) { walk(0, depth, {visit}); }

  /// Visits every legal choice of `to` fields with the first `from` as in `start`, but for what is
  /// not entered.
  void below(const Layout& start, std::size_t from, std::size_t to, const Visitor& visitor);

  /// Points below what is chosen, legal or not: of what is visited or entered when called from
  /// there, else of the whole space.
  std::int64_t size();

  /// What rules refused in all walks so far.
  const Rejections& rejected() const { return rejected_; }
  void forget_rejected() { rejected_.clear(); }

 private:
  void walk(std::size_t from, std::size_t to, const Visitor& visitor);
  void descend(std::size_t level, std::size_t to, const Visitor& visitor);
  void visit_families(const Visitor& visitor);
  const Families& families();
  // What rules refuse between two levels.
  Rejections refused(std::size_t from, std::size_t to, const Visit& visit);
  std::int64_t leaves(std::size_t level);
  void choose(Field field, std::int64_t value);
  Values values(std::size_t level);
  // The values that take longest to find, kept by what they depend on.
  const Values& remembered(std::size_t level, std::int64_t one, std::int64_t other);

  const SearchSpace& space_;
  Problem problem_;
  std::size_t level_ = 0;                     // fields chosen so far
  const Families::Family* family_ = nullptr;  // that is being entered
  Rejections rejected_;
  Families families_;         // below the groups
  Numbers<6> families_of_{};  // the shape of `families_`
  // Sizes by level and by the fields that the choices after it depend on.
  Numbers<7> key(std::size_t level) const {
    const Layout& l = problem_.layout;
    const bool in_group = level >= group_depth;  // where stages and recompute decide no more
    return {static_cast<std::int64_t>(level),
            l.tp,
            l.cp,
            l.pp,
            in_group ? 0 : l.vpp,
            in_group ? 0 : static_cast<std::int64_t>(l.recompute),
            static_cast<std::int64_t>(l.zero) + 4 * static_cast<std::int64_t>(l.offload)};
  }
  std::unordered_map<Numbers<7>, std::int64_t, NumbersHash> sizes_;
  std::unordered_map<Numbers<3>, Values, NumbersHash> values_;
};

}  // namespace zeroplan
