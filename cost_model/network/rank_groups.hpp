#pragma once
// Which ranks form the groups of a layout.

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string_view>

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// All groups of one kind: the group of rank r is the one rank in each of `ranks` places `stride`
/// apart. They tile the ranks, unless fewer than `stride` of them begin side by side.
struct RankGroup {
  std::string_view name;  // tp, cp, dp, shard, replica, pp, ep, expert-dp
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
  std::int64_t side_by_side = 0;  // 0: stride

  /// Groups that begin at neighbouring ranks.
  constexpr std::int64_t neighbours() const { return side_by_side > 0 ? side_by_side : stride; }
  /// Ranks from the first of these groups to their last.
  constexpr std::int64_t span() const { return (ranks - 1) * stride + neighbours(); }
  friend bool operator==(const RankGroup&, const RankGroup&) = default;
};
using RankGroups = boost::container::small_vector<RankGroup, 8>;  // room for those of any layout

/// The groups of more than one rank that a layout communicates in. Ranks are placed tp, cp, dp, pp
/// from the innermost outwards, and for experts etp, ep, expert-dp, pp (Megatron-LM
/// core/parallel_state.py). dp counts context-parallel ranks, which hold the same weights. Under
/// HSDP also `shard`, the neighbours that divide the states, and `replica`, those that hold the
/// same part (torchtitan distributed/parallel_dims.py).
RankGroups rank_groups(const Problem& problem);

/// The group that a program's call names: one of `groups`, which are rank_groups, of one rank where
/// the layout has none; or `etp`, the ranks that divide one expert; `embedding`, the two that hold
/// a tied embedding; `secondary`, those of ZeRO++'s second copy, and of the experts'
/// `expert-secondary`, which is called the same.
RankGroup called_group(const Problem& problem,
                       const RankGroups& groups,
                       std::string_view name);

/// Ranks of the group on one node, where each of its nodes has as many; else all.
std::int64_t ranks_on_a_node(const ClusterSpec& cluster, const RankGroup& group);

}  // namespace zeroplan
