#pragma once
// Who sends to whom at once, node by node: what a fabric's links see of an algorithm.

#include <cstddef>

namespace zeroplan {

enum class Pattern {
  ring,   // each node to the next, the last to the first
  chain,  // each node to the next
  trees,  // up and down two trees over the nodes, half of the buffer each
  pat,    // over distances that double; most to the nearest
  pairs,  // each rank to each other
};

inline constexpr std::size_t patterns = 5;

}  // namespace zeroplan
