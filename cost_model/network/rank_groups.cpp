// Who communicates with whom? Front doors: rank_groups, called_group.
#include "cost_model/network/rank_groups.hpp"

#include <algorithm>

#include "cost_model/program/recorded.hpp"
#include "cost_model/states/secondary_copy.hpp"

namespace zeroplan {

RankGroups rank_groups(const Problem& problem) {
  const Layout& l = problem.layout;
  RankGroups groups;
  const auto add = [&](std::string_view name, std::int64_t ranks, std::int64_t stride) {
    if (ranks > 1) groups.push_back({name, ranks, stride});
  };
  if (const auto& recorded = problem.runtime.recorded) {
    for (const RecordedGroup& group : recorded->groups) add(group.name, group.ranks, group.stride);
    return groups;
  }
  add("tp", l.tp, 1);
  add("cp", l.cp, l.tp);
  add("dp", l.dp * l.cp, l.tp);
  if (l.hsdp > 0) {
    add("shard", l.hsdp * l.cp, l.tp);
    add("replica", l.dp / l.hsdp, l.tp * l.cp * l.hsdp);
  }
  add("pp", l.pp, l.tp * l.cp * l.dp);
  if (problem.model.moe) {
    add("ep", l.ep, l.etp);
    add("expert-dp", shard_widths(problem).expert, l.etp * l.ep);
  }
  return groups;
}

RankGroup called_group(const Problem& problem,
                       const RankGroups& groups,
                       std::string_view name) {
  const auto found = std::ranges::find(groups, name, &RankGroup::name);
  if (found != groups.end()) return *found;
  const Layout& l = problem.layout;
  if (name == "etp") return {"etp", l.etp, 1};
  if (name == "embedding") {
    const std::int64_t stage_ranks = l.tp * l.cp * l.dp;
    return {"embedding", 2, (l.pp - 1) * stage_ranks, stage_ranks};
  }
  if (name == "secondary") return {"secondary", secondary_ranks(problem), l.tp};
  if (name == "expert-secondary") return {"secondary", secondary_ranks(problem), l.etp * l.ep};
  return {.name = name};
}

std::int64_t ranks_on_a_node(const ClusterSpec& cluster, const RankGroup& group) {
  const std::int64_t fit = std::max<std::int64_t>(1, cluster.gpus_per_node / group.stride);
  return group.ranks % fit == 0 ? fit : group.ranks;
}

}  // namespace zeroplan
