#pragma once
// Quantities with their unit in the type: only lawful arithmetic compiles.

#include <compare>
#include <concepts>
#include <cstdint>

namespace zeroplan {

/// An amount of memory or traffic. Signed, so that a shortfall is an ordinary value.
class Bytes {
 public:
  constexpr Bytes() = default;
  template <std::integral Integer>
  explicit constexpr Bytes(Integer count) : count_(static_cast<std::int64_t>(count)) {}

  constexpr std::int64_t count() const { return count_; }

  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }

  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes{a.count_ + b.count_}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes{a.count_ - b.count_}; }
  friend constexpr Bytes operator-(Bytes a) { return Bytes{-a.count_}; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t times) { return Bytes{a.count_ * times}; }
  friend constexpr Bytes operator*(std::int64_t times, Bytes a) { return a * times; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;

 private:
  std::int64_t count_ = 0;
};

inline constexpr std::int64_t mebi = std::int64_t{1} << 20;
inline constexpr std::int64_t gibi = std::int64_t{1} << 30;
inline constexpr double giga = 1e9;

/// GiB = 2^30 bytes: the unit of memory in every report.
constexpr double gibibytes(Bytes bytes) {
  return static_cast<double>(bytes.count()) / static_cast<double>(gibi);
}

/// Parts of a whole that do not divide evenly: the runtime pads, so round up. Assumes divisor > 0.
constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

/// The smallest multiple of `unit` that is not below `value`.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return ceil_div(value, unit) * unit;
}

inline namespace literals {
constexpr Bytes operator""_MiB(unsigned long long count) {
  return Bytes{static_cast<std::int64_t>(count) * mebi};
}
constexpr Bytes operator""_GiB(unsigned long long count) {
  return Bytes{static_cast<std::int64_t>(count) * gibi};
}
}  // namespace literals

}  // namespace zeroplan
