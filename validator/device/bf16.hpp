#pragma once
// bfloat16: the upper half of an fp32.

#include <cstdint>
#include <cstring>

namespace zeroplan::engine {

struct Bf16 {
  std::uint16_t bits = 0;
};

inline float widen(Bf16 value) {
  const std::uint32_t bits = std::uint32_t{value.bits} << 16U;
  float wide = 0;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}

/// Rounded to the nearest, ties to even. Finite values only.
inline Bf16 narrow(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t odd = (bits >> 16U) & 1U;
  return {static_cast<std::uint16_t>((bits + 0x7fffU + odd) >> 16U)};
}

}  // namespace zeroplan::engine
