#pragma once
// The points of a search space, one after another and never stored: a walk down the fields in
// choice_order that turns back where a rule says no.

#include <functional>
#include <map>
#include <string_view>
#include <tuple>

#include "planner/sweep/axis.hpp"

namespace zeroplan {

/// How many points each rule refused: a point counts under the first rule that it breaks.
using Rejections = std::map<std::string_view, std::int64_t>;

class Enumeration {
 public:
  explicit Enumeration(const SearchSpace& space)
      : space_(space), problem_(open_problem(space.request)) {}

  /// Fields that make up a node, and a group of points below one: all that the passes of a step
  /// depend on. What comes after them (HSDP, ZeRO, offload, overlap) says where the model states
  /// are and how they travel.
  static constexpr std::size_t node_depth = 11;
  static constexpr std::size_t group_depth = 12;

  using Visit = std::function<void(const Problem&)>;
  using Enter = std::function<bool(const Problem&)>;

  /// Visits every legal choice of the first node_depth fields.
  void nodes(const Visit& visit) { descend(0, node_depth, visit, {}); }

  /// Visits every legal point below a node. A group is passed over where `enter` says no.
  void points(
      const Layout& node, const Visit& visit, const Enter& enter = [](const Problem&) {
        return true;
      });

  /// Points below what is chosen: of a node or a group when called while it is visited or entered,
  /// else of the whole space; legal or not.
  std::int64_t size() { return leaves(level_); }

  const Rejections& rejected() const { return rejected_; }

 private:
  void descend(std::size_t level, std::size_t stop, const Visit& visit, const Enter& enter);
  std::int64_t leaves(std::size_t level);
  void choose(Field field, std::int64_t value);
  std::vector<std::int64_t> values(std::size_t level) const {
    return choices(space_, choice_order[level], problem_);
  }

  const SearchSpace& space_;
  Problem problem_;
  std::size_t level_ = 0;  // fields chosen so far
  Rejections rejected_;
  // Sizes by level and by the fields that the choices after it depend on.
  using Key = std::tuple<std::size_t,
                         std::int64_t,
                         std::int64_t,
                         std::int64_t,
                         std::int64_t,
                         Recompute,
                         ZeroStage>;
  Key key(std::size_t level) const {
    const Layout& l = problem_.layout;
    return {level, l.tp, l.cp, l.pp, l.vpp, l.recompute, l.zero};
  }
  std::map<Key, std::int64_t> sizes_;
};

}  // namespace zeroplan
