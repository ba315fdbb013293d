// What does a pass take from what is sent beside it? Front door: crowding.
#include "cost_model/pipeline/contention.hpp"

#include <algorithm>

namespace zeroplan {

void SentKinds::add(const SentKind& kind) {
  const auto known = std::ranges::find_if(kinds_, [&](const SentKind& k) {
    return k.waited == kind.waited && k.who.is_like(kind.who);
  });
  if (known != kinds_.end()) {
    known->seconds += kind.seconds;
  } else {
    kinds_.push_back(kind);
  }
}

Crowding crowding_where_sent(const ClusterSpec& cluster,
                             const std::vector<SentBeside>& sent,
                             const SentKinds& kinds,
                             const PassBeside& pass) {
  Crowding sum;
  for (const SentBeside& beside : sent) {
    if (beside.during != pass.during || beside.once != pass.once) continue;
    for (const SentKind& kind : kinds) {
      const double part =
          cluster.fabric->demand(beside.who, kind.who).crowding() * beside.seconds / pass.beside;
      (kind.waited ? sum.waited : sum.hidden) += part * kind.seconds.at(pass.during) / pass.seconds;
    }
  }
  return sum;
}

}  // namespace zeroplan
