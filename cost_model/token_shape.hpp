#pragma once
// Widths of one token on one rank: what every activation is a multiple of.

#include <cstdint>

#include "cost_model/problem.hpp"

namespace zeroplan {

/// In elements unless said. Tensor parallelism divides heads and features; sequence parallelism
/// also divides the norm regions, over the tokens.
struct TokenShape {
  std::int64_t element;  // bytes of an activation
  std::int64_t
      norm_rows;  // ranks that share the norm regions: tp with sequence parallelism, else 1
  std::int64_t hidden;
  std::int64_t query;
  std::int64_t key_value;  // keys or values alone; with MLA keys
  std::int64_t output;     // of attention, before its projection; with MLA also values
  std::int64_t heads;
  std::int64_t mlp;  // intermediate features of a dense layer
};

TokenShape token_shape(const Problem& problem);

}  // namespace zeroplan
