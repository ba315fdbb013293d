// What does linear attention compute and move? Front doors: delta_rule_flops, add_linear_attention.
#include "cost_model/kernel/delta_rule.hpp"

namespace zeroplan {

double delta_rule_flops(const LinearAttentionSpec& a) {
  constexpr double multiply_and_add = 2;
  constexpr double products = 4;
  const auto state = static_cast<double>(a.key_head_dim * a.value_head_dim);
  return multiply_and_add * (static_cast<double>(a.convolution * a.mixed()) +
                             products * static_cast<double>(a.value_heads) * state);
}

void add_linear_attention(std::vector<Traffic>& out,
                          const LinearAttentionSpec& a,
                          std::int64_t tokens) {
  const auto bytes = [&](std::int64_t elements) {
    constexpr std::int64_t in_16_bits = 2;
    return Bytes{in_16_bits * elements * tokens};
  };
  const auto add = [&](Module module, std::int64_t forward, std::int64_t backward) {
    out.push_back({module, Access::streaming, bytes(forward), bytes(backward)});
  };
  // Elements of a token: of queries, of values, of keys by value head, of the inverses of chunks,
  // and of the states that chunks begin with.
  const std::int64_t k = a.keys();
  const std::int64_t v = a.values();
  const std::int64_t m = a.mixed();
  const std::int64_t own_k = a.value_heads * a.key_head_dim;
  const std::int64_t inverse = a.value_heads * delta_rule_chunk;
  const std::int64_t state = own_k * a.value_head_dim / delta_rule_chunk;

  // Where one projection makes all four, each is copied out of it and three are joined again.
  const std::int64_t apart = a.joined_projections ? 2 * (m + v) : 0;
  const std::int64_t joined = a.joined_projections ? 2 * m : 0;
  add(Module::convolution, apart + joined + 2 * m, 2 * m + 3 * m + apart);

  const std::int64_t in_a_row = 2 * m;
  const std::int64_t norms = 2 * (2 * k);
  const std::int64_t solved = k + v + inverse;  // reads keys and values beside it
  const std::int64_t written = own_k + v;
  const std::int64_t scanned = k + written + state + v;
  const std::int64_t output = 2 * k + v + state + v;
  const std::int64_t forward = in_a_row + norms + solved + written + scanned + output;
  const std::int64_t again = solved + written + scanned;
  const std::int64_t local_values = 2 * k + 2 * v;
  const std::int64_t scanned_back = 2 * k + own_k + 2 * v + state + v;
  const std::int64_t gradients = 2 * k + own_k + 3 * v + 2 * state + 3 * own_k;
  const std::int64_t of_solution = k + v + inverse + 2 * written;
  const std::int64_t summed = 3 * (own_k + k) + 3 * k;  // over value heads, and of keys' two parts
  add(Module::delta_rule, forward,
      again + local_values + scanned_back + gradients + of_solution + summed +
          2 * (3 * k));  // through both norms

  // Operators in fp32 count twice: 13 and 7 passes forward, 30 and 12 backward, over what is 32 and
  // 16 bits wide (transformers v5.24.0 models/qwen3_next/modeling_qwen3_next.py
  // Qwen3NextRMSNormGated).
  add(Module::gated_output, (2 * 13 + 7) * v, (2 * 30 + 12) * v);
}

}  // namespace zeroplan
