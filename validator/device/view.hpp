#pragma once
// A matrix somewhere in a device's memory.

#include <cstdint>

namespace zeroplan::engine {

/// Not owned, rows one after another. `data` is null on a device that only counts.
template <class Value>
struct View {
  Value* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 1;

  std::int64_t elements() const { return rows * columns; }
  /// `count` rows from `first`.
  View part(std::int64_t first, std::int64_t count) const {
    return {data == nullptr ? nullptr : data + first * columns, count, columns};
  }
  operator View<const Value>() const { return {data, rows, columns}; }  // NOLINT: as pointers do
};

}  // namespace zeroplan::engine
