#pragma once
// What an element becomes when the buffers of several ranks are combined on the host.

#include <algorithm>
#include <vector>

#include "validator/communicator/communicator.hpp"

namespace zeroplan::engine {

inline float load(Bf16 value) {
  return widen(value);
}
inline float load(float value) {
  return value;
}
inline void store(Bf16& to, float value) {
  to = narrow(value);
}
inline void store(float& to, float value) {
  to = value;
}

/// Element `at` of all buffers, in the order of ranks, in fp32.
template <class Value>
float combined(const std::vector<void*>& buffers, std::int64_t at, Reduction reduction) {
  float result = load(static_cast<const Value*>(buffers[0])[at]);
  for (std::size_t r = 1; r < buffers.size(); ++r) {
    const float next = load(static_cast<const Value*>(buffers[r])[at]);
    result = reduction == Reduction::sum ? result + next : std::max(result, next);
  }
  return result;
}

}  // namespace zeroplan::engine
