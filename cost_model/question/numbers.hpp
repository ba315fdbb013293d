#pragma once
// A hash of a few numbers, for what is remembered by them.

#include <array>
#include <cstdint>

namespace zeroplan {

template <std::size_t size>
using Numbers = std::array<std::int64_t, size>;

/// A hash of Numbers of any size: multiplication and shift, number after number.
struct NumbersHash {
  template <std::size_t size>
  std::size_t operator()(const Numbers<size>& numbers) const {
    std::uint64_t hash = 0;
    for (const std::int64_t number : numbers) {
      hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 29;
    }
    return static_cast<std::size_t>(hash);
  }
};

}  // namespace zeroplan
