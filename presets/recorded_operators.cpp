// What does a recorded kernel work on? Front door: read_operator.
#include "presets/recorded_operators.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

// As large as products of two of them and an element's bytes can be counted.
constexpr Range any_length{1, 1'000'000'000};

ProductShape read_product(const JsonObject& json) {
  json.allow_only({"m", "n", "k", "groups", "output_bytes", "columns_of_inputs"});
  return {.m = json.integer("m", any_length),
          .n = json.integer("n", any_length),
          .k = json.integer("k", any_length),
          .groups = json.integer("groups", {1, 1'000'000}),
          .output_bytes = json.integer("output_bytes", {1, 8}),
          .columns_of_inputs = json.boolean("columns_of_inputs")};
}

ScoreShape read_attention(const JsonObject& json) {
  json.allow_only({"batch", "queries", "keys", "heads", "kv_heads", "qk_width", "v_width", "causal",
                   "backward", "newest"});
  const ScoreShape shape{.batch = json.integer("batch", any_length),
                         .queries = json.integer("queries", any_length),
                         .keys = json.integer("keys", any_length),
                         .heads = json.integer("heads", any_length),
                         .kv_heads = json.integer("kv_heads", any_length),
                         .qk_width = json.integer("qk_width", any_length),
                         .v_width = json.integer("v_width", any_length),
                         .causal = json.boolean("causal"),
                         .backward = json.boolean("backward"),
                         .newest = json.boolean("newest")};
  const auto d = [](std::int64_t value) { return static_cast<double>(value); };
  constexpr double most = 1e17;  // scores, and elements of the tensors
  const double scores = d(shape.batch) * d(shape.heads) * d(shape.queries) * d(shape.keys);
  const double rows = d(shape.heads) * d(shape.queries) + d(shape.kv_heads) * d(shape.keys);
  if (scores > most || d(shape.batch) * rows * (d(shape.qk_width) + d(shape.v_width)) > most) {
    json.fail("attention over more scores or elements than 10^17");
  }
  return shape;
}

}  // namespace

Operator read_operator(const JsonObject& json) {
  json.allow_only(
      {"name", "scope", "gradient", "precision", "moved_bytes", "product", "attention"});
  Operator op;
  const std::string precision = json.string("precision");
  const auto known = parse_name<Precision>(precision);
  if (!known) {
    json.fail(fmt::format("'precision' is {}: must be one of {}", in_quotes(precision),
                          fmt::join(names<Precision>(), ", ")));
  }
  op.precision = *known;
  op.gradient = json.boolean("gradient");
  if (json.has("moved_bytes") + json.has("product") + json.has("attention") != 1) {
    json.fail("one of 'moved_bytes', 'product' and 'attention' says what it works on");
  }
  if (json.has("product")) {
    op.work = read_product(json.object("product"));
  } else if (json.has("attention")) {
    op.work = read_attention(json.object("attention"));
  } else {
    op.work = Bytes{json.integer("moved_bytes", any_bytes)};
  }
  return op;
}

}  // namespace zeroplan
