#pragma once
// The switches between the nodes of a cluster, as a preset says them.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/names.hpp"

namespace zeroplan {

/// What the first switches of a fabric join: all network cards of a node, or those with the same
/// place in their nodes (a rail). Rails meet on the levels above, or nowhere: what is sent from one
/// to another then passes the links inside a node first (Wang et al., Rail-only, arXiv 2307.12169).
enum class Rails { none, optimized, only };

template <>
struct Spellings<Rails> {
  static constexpr std::array<std::string_view, 3> value{"none", "optimized", "only"};
};

/// Switches of one kind. The rails' switches for the same nodes count as one: rails carry the same,
/// so that what one of them does, all do.
struct FabricLevel {
  std::string name;        // leaf, pod, spine
  std::int64_t joins = 0;  // nodes, or switches of the level below; 0: all of them
  double uplink = 0;  // bytes/s of a switch to the level above, one direction; none of the last
  friend bool operator==(const FabricLevel&, const FabricLevel&) = default;
};

struct FabricSpec {
  std::vector<FabricLevel> levels;  // from the nodes upwards; a switch of the last joins all
  Rails rails = Rails::none;
  // Where the nodes stand, in the order in which ranks fill them: place p under the p / joins-th
  // switch of the first level. Nodes beyond the list follow its last; empty: all from 0 on.
  std::vector<std::int64_t> nodes;
  friend bool operator==(const FabricSpec&, const FabricSpec&) = default;
};

}  // namespace zeroplan
