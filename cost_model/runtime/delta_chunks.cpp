// What do the kernels of a gated delta rule allocate? Front doors: write_delta_chunks,
// write_delta_chunks_backward.
#include "cost_model/runtime/delta_chunks.hpp"

#include "cost_model/kernel/delta_rule.hpp"

namespace zeroplan {

DeltaChunks delta_chunks(const LinearAttentionSpec& a,
                         std::int64_t element,
                         std::int64_t tokens,
                         std::int64_t samples) {
  constexpr std::int64_t bytes_in_fp32 = 4;
  const auto each = [&](std::int64_t width) { return Bytes{element * width * tokens}; };
  const std::int64_t expanded = a.value_heads * a.key_head_dim;
  const std::int64_t chunks = samples * ceil_div(tokens / samples, delta_rule_chunk);
  return {.keys = each(a.keys()),
          .expanded_keys = each(expanded),
          .values = each(a.values()),
          .rates = each(a.value_heads),
          .wide_rates = Bytes{bytes_in_fp32 * a.value_heads * tokens},
          .inverses = each(a.value_heads * delta_rule_chunk),
          .states = Bytes{element * chunks * expanded * a.value_head_dim}};
}

Tensor write_delta_chunks(BlockWriter& w, const DeltaChunks& z, Category category) {
  const Tensor keys_written = w.temporary("keys as written", z.expanded_keys);
  const Tensor values_written = w.temporary("values as written", z.values);
  const Tensor states = w.temporary("states of chunks", z.states);
  const Tensor new_values = w.temporary("new values", z.values);
  const Tensor output = w.allocate("output of the delta rule", z.values, category);
  w.free({keys_written, values_written, states, new_values});
  return output;
}

DeltaChunkGradients write_delta_chunks_backward(BlockWriter& w, const DeltaChunks& z) {
  const auto make = [&](std::string_view name, Bytes bytes) { return w.temporary(name, bytes); };
  const Tensor keys_written = make("keys as written", z.expanded_keys);
  const Tensor values_written = make("values as written", z.values);
  const Tensor states = make("states of chunks", z.states);
  const Tensor new_values = make("new values", z.values);
  const Tensor own_values = make("value gradient by chunk", z.values);
  const Tensor of_states = make("gradients of states", z.states);
  const Tensor of_values = make("gradient of new values", z.values);
  w.free(own_values);
  const Tensor query = make("query gradient by value head", z.expanded_keys);
  const Tensor key = make("key gradient by value head", z.expanded_keys);
  const Tensor of_decay = make("decay gradient by block", 4 * z.wide_rates);
  const Tensor of_keys = make("gradient of keys as written", z.expanded_keys);
  const auto summed = [&](std::string_view name, Tensor whole) {
    if (z.expanded_keys == z.keys) return whole;
    const Tensor sum = make(name, z.keys);
    w.free(whole);
    return sum;
  };
  const Tensor query_sum = summed("normalised query gradient", query);
  const Tensor key_sum = summed("normalised key gradient", key);
  w.free(of_decay);
  const Tensor second = make("second key gradient by value head", z.expanded_keys);
  const Tensor value = make("value gradient", z.values);
  const Tensor rates = make("gradients of both rates", z.wide_rates + z.rates);
  const Tensor second_sum = summed("second key gradient", second);
  w.free({keys_written, values_written, states, new_values, of_states, of_values, of_keys,
          second_sum});
  return {query_sum, key_sum, value, rates};
}

}  // namespace zeroplan
