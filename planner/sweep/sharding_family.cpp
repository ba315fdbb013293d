// Which points of a family need least? Front door: leanest_of_family.
#include "planner/sweep/sharding_family.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

// Whether nothing is padded: then no narrower group has less of anything, padded itself or not.
bool without_padding(const Problem& p, const WeightInventory& inventory) {
  const ShardWidths widths = shard_widths(p);
  const auto divides = [&](const std::vector<Weight>& weights) {
    return std::all_of(weights.begin(), weights.end(), [&](const Weight& w) {
      const LocalWeight local = local_weight(w, p);
      const std::int64_t width = w.expert ? widths.expert : widths.dense;
      return width * first_dimension_shard(p, local, width) == local.elements();
    });
  };
  return divides(inventory.embedding) && std::ranges::all_of(inventory.layers, divides) &&
         divides(inventory.head);
}

}  // namespace

std::vector<Sharding> leanest_of_family(const SearchSpace& space,
                                        Problem& family,
                                        const Evaluator& evaluator) {
  if (*code_of(family).divides_states != DividesStates::always) return {};
  const Values groups = choices(space, Field::hsdp, family);
  const bool all_share = std::find(groups.begin(), groups.end(), 0) != groups.end();
  family.layout.hsdp = all_share ? 0 : *std::max_element(groups.begin(), groups.end());
  if (first_violation(family) || !without_padding(family, evaluator.weights())) return {};
  std::vector<Sharding> leanest;
  for (const std::int64_t knobs : choices(space, Field::knobs, family)) {
    Layout point = family.layout;
    set_value(point, Field::knobs, knobs);
    if (point.gathered_layers > 0) continue;  // more than with none
    leanest.push_back(sharding_of(point));
  }
  return leanest;
}

}  // namespace zeroplan
