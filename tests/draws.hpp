#pragma once
// How much a property test looks at.

namespace zeroplan::tests {

#ifdef ZEROPLAN_SANITIZED  // what is tested: the test itself need not be
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Of `full` draws all, or under sanitizers a part: they find what is wrong with the code in any of
/// them, and take five times as long for each.
constexpr int draws(int full) {
  return sanitized ? 1 + full / 30 : full;
}

}  // namespace zeroplan::tests
