// Which rank sits where? Front doors: ranks_text, ranks_json, ranks_csv.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/explain/explain_report.hpp"
#include "cli/out/report.hpp"
#include "cost_model/explain/rank_map.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t shown_ranks = 32;

struct Dimension {
  std::string_view name;
  std::int64_t RankPlace::*place;
};

// The dimensions in which ranks differ.
std::vector<Dimension> dimensions(const Problem& p) {
  const Layout& l = p.layout;
  std::vector<Dimension> list;
  const auto add = [&](std::string_view name, std::int64_t degree, std::int64_t RankPlace::*place) {
    if (degree > 1) list.push_back({name, place});
  };
  add("tp", l.tp, &RankPlace::tp);
  add("cp", l.cp, &RankPlace::cp);
  add("dp", l.dp, &RankPlace::dp);
  add("pp", l.pp, &RankPlace::pp);
  if (p.model.moe) {
    add("etp", l.etp, &RankPlace::etp);
    add("ep", l.ep, &RankPlace::ep);
  }
  return list;
}

std::string group_line(const GroupPlacement& placed) {
  const RankGroup& group = placed.group;
  const std::string apart =
      group.stride == 1 ? "neighbours" : fmt::format("{} apart", group.stride);
  const std::string nodes =
      placed.nodes == 1 ? "in a node" : fmt::format("on {} nodes", placed.nodes);
  return fmt::format("    {:<12}{:>8} ranks  {:<14}{:<14}{}\n", group.name, group.ranks, apart,
                     nodes, placed.link);
}

}  // namespace

std::string ranks_text(const Problem& problem) {
  std::string out = fmt::format("{} on {} x {}, {} in a node\n  {}\n\n  groups\n",
                                problem.model.name, problem.cluster.gpus, problem.cluster.gpu.name,
                                problem.cluster.gpus_per_node, layout_text(problem));
  for (const GroupPlacement& placed : group_placements(problem)) out += group_line(placed);
  for (const std::string& far : far_groups(problem)) out += fmt::format("    {}\n", far);
  const std::vector<Dimension> list = dimensions(problem);
  const std::vector<std::int64_t> places = node_places(problem);
  const NodeSwitches switches = node_switches(problem);
  const std::size_t wide = std::max<std::size_t>(8, switches.name.size() + 2);
  const auto of_node = [&](const auto& place, const auto& under) {
    return places.empty() ? std::string() : fmt::format("{:>8}{:>{}}", place, under, wide);
  };
  out +=
      fmt::format("\n  {:>8}{:>8}{}{:>6}", "rank", "node", of_node("place", switches.name), "GPU");
  for (const Dimension& one : list) out += fmt::format("{:>6}", one.name);
  out += "\n";
  const std::int64_t all = world_size(problem.layout);
  for (std::int64_t rank = 0; rank < std::min(all, shown_ranks); ++rank) {
    const RankPlace place = place_of(problem, rank);
    const auto node = static_cast<std::size_t>(place.node);
    out +=
        fmt::format("  {:>8}{:>8}{}{:>6}", rank, place.node,
                    places.empty() ? "" : of_node(places[node], switches.under[node]), place.gpu);
    for (const Dimension& one : list) out += fmt::format("{:>6}", place.*one.place);
    out += "\n";
  }
  if (all > shown_ranks) {
    out += fmt::format("  and so on to rank {}; --csv and --json have all\n", all - 1);
  }
  return out;
}

std::string ranks_json(const Problem& problem) {
  Json out{{"schema", "zeroplan.ranks/1"},
           {"gpus_per_node", problem.cluster.gpus_per_node},
           {"groups", Json::array()},
           {"warnings", far_groups(problem)},
           {"ranks", Json::array()}};
  for (const GroupPlacement& placed : group_placements(problem)) {
    out["groups"].push_back({{"group", placed.group.name},
                             {"ranks", placed.group.ranks},
                             {"stride", placed.group.stride},
                             {"nodes", placed.nodes},
                             {"link", placed.link}});
  }
  const std::vector<Dimension> list = dimensions(problem);
  const std::vector<std::int64_t> places = node_places(problem);
  const NodeSwitches switches = node_switches(problem);
  for (std::int64_t rank = 0; rank < world_size(problem.layout); ++rank) {
    const RankPlace place = place_of(problem, rank);
    Json entry{{"rank", rank}, {"node", place.node}, {"gpu", place.gpu}};
    if (!places.empty()) {
      entry["place"] = places[static_cast<std::size_t>(place.node)];
      entry["switch"] = switches.under[static_cast<std::size_t>(place.node)];
    }
    for (const Dimension& one : list) entry[std::string(one.name)] = place.*one.place;
    out["ranks"].push_back(std::move(entry));
  }
  return out.dump() + "\n";
}

std::string ranks_csv(const Problem& problem) {
  const std::vector<Dimension> list = dimensions(problem);
  std::string out = "rank,node,gpu";
  for (const Dimension& one : list) out += fmt::format(",{}", one.name);
  out += "\n";
  for (std::int64_t rank = 0; rank < world_size(problem.layout); ++rank) {
    const RankPlace place = place_of(problem, rank);
    out += fmt::format("{},{},{}", rank, place.node, place.gpu);
    for (const Dimension& one : list) out += fmt::format(",{}", place.*one.place);
    out += "\n";
  }
  return out;
}

}  // namespace zeroplan
