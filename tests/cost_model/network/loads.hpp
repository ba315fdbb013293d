#pragma once
// The collectives of a problem, and sums over them.

#include <algorithm>
#include <tuple>

#include "cost_model/network/volume.hpp"
#include "tests/specs.hpp"

namespace zeroplan::tests {

inline std::vector<CollectiveLoad> loads_of(const Problem& p, std::size_t stage = 0) {
  return step_collectives(p, weight_inventory(p.model), stages(p).at(stage));
}

// In an order of their own, to be compared.
inline auto sorted(const std::vector<CollectiveLoad>& loads) {
  std::vector<std::tuple<std::string_view, Collective, During, std::int64_t, Bytes, bool>> list;
  for (const CollectiveLoad& l : loads) {
    list.push_back(
        {l.group.name, l.collective, l.during, l.calls, l.payload, l.beside == Beside::products});
  }
  std::ranges::sort(list);
  return list;
}

// Bytes sent in one step by the loads that `wanted` takes.
inline std::int64_t sent(const std::vector<CollectiveLoad>& loads, auto wanted) {
  std::int64_t bytes = 0;
  for (const CollectiveLoad& load : loads) {
    if (wanted(load)) bytes += sent_bytes_per_step(load).count();
  }
  return bytes;
}

inline std::int64_t sent_in(const std::vector<CollectiveLoad>& loads, std::string_view group) {
  return sent(loads, [&](const CollectiveLoad& l) { return l.group.name == group; });
}

inline std::int64_t sent_all(const Problem& p) {
  return sent(loads_of(p), [](const CollectiveLoad&) { return true; });
}

inline Problem accumulating(Problem p, std::int64_t times) {
  p.training.global_batch *= times;
  return p;
}

}  // namespace zeroplan::tests
