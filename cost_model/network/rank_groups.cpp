// Who communicates with whom? Front door: rank_groups.
#include "cost_model/network/rank_groups.hpp"

namespace zeroplan {

std::vector<RankGroup> rank_groups(const Problem& problem) {
  const Layout& l = problem.layout;
  std::vector<RankGroup> groups;
  const auto add = [&](std::string_view name, std::int64_t ranks, std::int64_t stride) {
    if (ranks > 1) groups.push_back({name, ranks, stride});
  };
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

}  // namespace zeroplan
