#pragma once
// How the caching allocator rounds: the constants of its source, and what follows from them.

#include <bit>

#include "cost_model/question/units.hpp"

namespace zeroplan::allocator {

inline constexpr std::int64_t min_block = 512;
inline constexpr std::int64_t small_request = mebi;        // up to here: the small class
inline constexpr std::int64_t small_segment = 2 * mebi;    // also the chunk of the small class
inline constexpr std::int64_t large_segment = 20 * mebi;   // also the chunk of the large class
inline constexpr std::int64_t medium_request = 10 * mebi;  // below here: share a large segment
inline constexpr std::int64_t segment_step = 2 * mebi;     // from there on: a segment of its own

/// The size of the block that a request asks for. `divisions` is a power of two; above 1, sizes
/// round up to that many steps between powers of two.
constexpr std::int64_t block_size(std::int64_t requested, std::int64_t divisions) {
  if (requested < min_block) return min_block;
  if (divisions <= 1 || requested <= min_block * divisions) return round_up(requested, min_block);
  const auto power =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(requested)));
  return round_up(requested, power / divisions);
}

constexpr bool is_large(std::int64_t block_size) {
  return block_size > small_request;
}

/// What a segment for a block of this size takes from the device.
constexpr std::int64_t segment_size(std::int64_t block_size) {
  if (!is_large(block_size)) return small_segment;
  if (block_size < medium_request) return large_segment;
  return round_up(block_size, segment_step);
}

}  // namespace zeroplan::allocator
