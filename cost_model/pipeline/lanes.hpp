#pragma once
// Seconds of several timings of the same step side by side, as vector instructions read them:
// templates over `Seconds` take a double, or these.

#include <algorithm>
#include <array>
#include <cstddef>

namespace zeroplan {

/// A number of each of several timings. Each is found as it would be alone, to the last digit.
struct alignas(64) Lanes {
  static constexpr std::size_t count = 8;

  std::array<double, count> each;

  Lanes() = default;
  Lanes(double of_all) { each.fill(of_all); }

  friend bool operator==(const Lanes&, const Lanes&) = default;
  [[gnu::always_inline]] friend inline Lanes operator+(const Lanes& a, const Lanes& b) {
    return of_both(a, b, [](double x, double y) { return x + y; });
  }
  [[gnu::always_inline]] friend inline Lanes operator-(const Lanes& a, const Lanes& b) {
    return of_both(a, b, [](double x, double y) { return x - y; });
  }
  [[gnu::always_inline]] friend inline Lanes operator*(const Lanes& a, const Lanes& b) {
    return of_both(a, b, [](double x, double y) { return x * y; });
  }
  [[gnu::always_inline]] friend inline Lanes max(const Lanes& a, const Lanes& b) {
    return of_both(a, b, [](double x, double y) { return std::max(x, y); });
  }
  [[gnu::always_inline]] friend inline Lanes min(const Lanes& a, const Lanes& b) {
    return of_both(a, b, [](double x, double y) { return std::min(x, y); });
  }
  Lanes& operator+=(const Lanes& other) { return *this = *this + other; }

 private:
  template <class Function>
  [[gnu::always_inline]] static inline Lanes of_both(const Lanes& a,
                                                     const Lanes& b,
                                                     Function function) {
    Lanes result;
    for (std::size_t i = 0; i < count; ++i) result.each[i] = function(a.each[i], b.each[i]);
    return result;
  }
};

/// A function that works on several with all that it calls: made for each width of vectors, of
/// which the widest that the processor has is chosen when the program is loaded. Clang does not
/// take both attributes, and the thread sanitizer is not there yet when it is loaded.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define ZEROPLAN_WIDEST_VECTORS [[gnu::target_clones("avx512f", "avx2", "default"), gnu::flatten]]
#else
#define ZEROPLAN_WIDEST_VECTORS
#endif

/// How many timings a Seconds holds, and one of them.
template <class Seconds>
inline constexpr std::size_t lanes_in = Seconds::count;
template <>
inline constexpr std::size_t lanes_in<double> = 1;
inline double& timing(double& seconds, std::size_t) {
  return seconds;
}
inline double timing(const double& seconds, std::size_t) {
  return seconds;
}
inline double& timing(Lanes& seconds, std::size_t i) {
  return seconds.each[i];
}
inline double timing(const Lanes& seconds, std::size_t i) {
  return seconds.each[i];
}

}  // namespace zeroplan
