// Which rank sits where? Front doors: place_of, group_placements.
#include "cost_model/explain/rank_map.hpp"

#include <fmt/format.h>

#include "cost_model/network/fabric.hpp"
#include "cost_model/network/topology.hpp"

namespace zeroplan {
namespace {

GroupPlacement placed(const Problem& p, const RankGroup& group) {
  const CommunicationGroup on = placement(p.cluster, group);
  return {.group = group,
          .ranks_on_a_node = on.ranks_per_node,
          .nodes = nodes_of(on),
          .link = link_of(p.cluster, group)};
}

}  // namespace

RankPlace place_of(const Problem& problem, std::int64_t rank) {
  const Layout& l = problem.layout;
  const std::int64_t of_stage = l.tp * l.cp * l.dp;
  const std::int64_t in_stage = rank % of_stage;
  return {.rank = rank,
          .node = rank / problem.cluster.gpus_per_node,
          .gpu = rank % problem.cluster.gpus_per_node,
          .tp = in_stage % l.tp,
          .cp = in_stage / l.tp % l.cp,
          .dp = in_stage / (l.tp * l.cp),
          .pp = rank / of_stage,
          .etp = in_stage % l.etp,
          .ep = in_stage / l.etp % l.ep};
}

std::vector<std::int64_t> node_places(const Problem& problem) {
  const ClusterSpec& cluster = problem.cluster;
  if (!cluster.fabric) return {};
  return cluster.fabric->places(ceil_div(cluster.gpus, cluster.gpus_per_node));
}

NodeSwitches node_switches(const Problem& problem) {
  NodeSwitches switches{.name = {}, .under = node_places(problem)};
  if (switches.under.empty()) return switches;
  const std::vector<FabricLevel>& levels = problem.cluster.fabric->spec().levels;
  switches.name = levels.front().name;
  // The last level has one switch for all.
  const std::int64_t joins = levels.size() > 1 ? levels.front().joins : 0;
  for (std::int64_t& node : switches.under) node = joins > 0 ? node / joins : 0;
  return switches;
}

std::vector<GroupPlacement> group_placements(const Problem& problem) {
  std::vector<GroupPlacement> placements;
  for (const RankGroup& group : rank_groups(problem)) placements.push_back(placed(problem, group));
  return placements;
}

std::vector<std::string> far_groups(const Problem& problem) {
  std::vector<std::string> sentences;
  const auto look = [&](const RankGroup& group) {
    if (group.ranks == 1) return;
    const GroupPlacement on = placed(problem, group);
    if (on.nodes == 1) return;
    sentences.push_back(
        fmt::format("{} {} stands on {} nodes: what it exchanges in every layer goes over the "
                    "network",
                    group.name, group.ranks, on.nodes));
  };
  look({.name = "tp", .ranks = problem.layout.tp});
  if (problem.model.moe) look({.name = "etp", .ranks = problem.layout.etp});
  return sentences;
}

}  // namespace zeroplan
