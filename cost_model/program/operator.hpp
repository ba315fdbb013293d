#pragma once
// A kernel by what it worked on: of a step that was recorded, where no module of a model names it.
// How long it takes, kernel/operator_time.hpp says.

#include <cstdint>
#include <string_view>
#include <variant>

#include "cost_model/question/training.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

/// (m x k) times (k x n), `groups` times.
struct ProductShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t groups = 1;
  std::int64_t output_bytes = 2;   // of an element
  bool columns_of_inputs = false;  // the first factor is transposed, as in a weight gradient
};

/// Core attention that stores no scores.
struct ScoreShape {
  std::int64_t batch = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t qk_width = 0;  // of a head
  std::int64_t v_width = 0;
  bool causal = true;
  bool backward = false;
  bool newest = false;  // the generation's newest kernel; else FlashAttention-2
};

struct Operator {
  std::string_view name;   // as the framework calls it
  std::string_view scope;  // module that called it; empty: none, as in a backward pass
  bool gradient = false;   // a backward pass ran it, in whichever pass of the step that was
  Precision precision = Precision::bf16;
  std::variant<Bytes, ProductShape, ScoreShape> work;  // bytes: read and written, nothing else
};

}  // namespace zeroplan
