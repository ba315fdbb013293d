// What does linear attention compute and move? Front doors: delta_rule_flops, add_linear_attention.
#include "cost_model/kernel/delta_rule.hpp"

namespace zeroplan {
namespace {

// Elements of a token that the kernels read and write.
struct RuleElements {
  std::int64_t k, own_k, v, inverse, state;

  std::int64_t solved() const { return k + v + inverse; }  // reads keys and values beside it
  std::int64_t written() const { return own_k + v; }
  std::int64_t scanned() const { return k + written() + state + v; }

  std::int64_t forward() const { return solved() + written() + scanned() + 2 * k + v + state + v; }

  std::int64_t backward() const {
    const std::int64_t again = solved() + written() + scanned();
    const std::int64_t local_values = 2 * k + 2 * v;
    const std::int64_t scanned_back = 2 * k + own_k + 2 * v + state + v;
    const std::int64_t gradients = 2 * k + own_k + 3 * v + 2 * state + 3 * own_k;
    const std::int64_t of_solution = k + v + inverse + 2 * written();
    const std::int64_t both_of_keys = 3 * k;  // the two parts of their gradient
    const std::int64_t over_heads = own_k > k ? 3 * (own_k + k) : 0;
    return again + local_values + scanned_back + gradients + of_solution + over_heads +
           both_of_keys;
  }
};

// `k`: the keys that the kernels are given.
RuleElements rule_elements(const LinearAttentionSpec& a, std::int64_t k) {
  const std::int64_t own_k = a.value_heads * a.key_head_dim;
  return {.k = k,
          .own_k = own_k,
          .v = a.values(),
          .inverse = a.value_heads * delta_rule_chunk,
          .state = own_k * a.value_head_dim / delta_rule_chunk};
}

struct Elements {
  std::int64_t forward = 0, backward = 0;
};

// What a token moves, in elements, of the three modules.
struct LinearAttentionElements {
  Elements convolution, rule, gated_output;
};

// Transformers copies out of the projections and back, and spells out the norm of the output.
LinearAttentionElements spelt_out(const LinearAttentionSpec& a) {
  const std::int64_t k = a.keys();
  const std::int64_t v = a.values();
  const std::int64_t m = a.mixed();
  // Where one projection makes all four, each is copied out of it and three are joined again.
  const std::int64_t apart = a.joined_projections ? 2 * (m + v) : 0;
  const std::int64_t joined = a.joined_projections ? 2 * m : 0;
  const RuleElements rule = rule_elements(a, k);
  const std::int64_t in_a_row = 2 * m;
  const std::int64_t norms = 2 * (2 * k);
  const std::int64_t through_norms = 2 * (3 * k);
  // Operators in fp32 count twice: 13 and 7 passes forward, 30 and 12 backward, over what is 32 and
  // 16 bits wide (transformers v5.24.0 models/qwen3_next/modeling_qwen3_next.py
  // Qwen3NextRMSNormGated).
  return {.convolution = {apart + joined + 2 * m, 2 * m + 3 * m + apart},
          .rule = {in_a_row + norms + rule.forward(), rule.backward() + through_norms},
          .gated_output = {(2 * 13 + 7) * v, (2 * 30 + 12) * v}};
}

// Megatron-Core compiles what stands between the kernels: it joins the gradients of all that was
// projected, gives the rule keys of each value head, and norms and gates its output
// (Megatron-LM @d98e8a64dd core/ssm/gated_delta_net/gdn.py).
LinearAttentionElements compiled(const LinearAttentionSpec& a) {
  const std::int64_t k = a.keys();
  const std::int64_t v = a.values();
  const std::int64_t m = a.mixed();
  const RuleElements rule = rule_elements(a, a.value_heads * a.key_head_dim);
  const std::int64_t in_a_row = 2 * (2 * k);
  const std::int64_t norms = 2 * (2 * k);
  const std::int64_t repeated = 2 * k + 2 * rule.own_k;
  const std::int64_t values_and_gate = 2 * 2 * v;
  // Both gradients are summed up by head, pass the norm, and stand beside that of the values.
  const std::int64_t summed = 2 * rule.own_k + 2 * k;
  const std::int64_t through_norms = 3 * (2 * k);
  const std::int64_t beside_values = 2 * m;
  const std::int64_t activated = 3 * m, convolved = 3 * m, joined = 2 * (m + v);
  const std::int64_t norm = 2 * v, norm_back = 3 * v, gated = 3 * v, gated_back = 5 * v;
  return {.convolution = {2 * m, activated + convolved + joined},
          .rule = {in_a_row + norms + repeated + values_and_gate + rule.forward(),
                   rule.backward() + summed + through_norms + beside_values},
          .gated_output = {norm + gated, norm_back + gated_back}};
}

}  // namespace

double delta_rule_flops(const LinearAttentionSpec& a) {
  constexpr double multiply_and_add = 2;
  constexpr double products = 4;
  const auto state = static_cast<double>(a.key_head_dim * a.value_head_dim);
  return multiply_and_add * (static_cast<double>(a.convolution * a.mixed()) +
                             products * static_cast<double>(a.value_heads) * state);
}

void add_linear_attention(std::vector<Traffic>& out,
                          const LinearAttentionSpec& attention,
                          std::int64_t tokens,
                          const DeltaRuleHabits& habits) {
  const auto bytes = [&](std::int64_t elements) {
    constexpr std::int64_t in_16_bits = 2;
    return Bytes{in_16_bits * elements * tokens};
  };
  const auto add = [&](Module module, const Elements& moved) {
    out.push_back({module, Access::streaming, bytes(moved.forward), bytes(moved.backward)});
  };
  LinearAttentionElements all = habits.spells_out ? spelt_out(attention) : compiled(attention);
  const std::int64_t v = attention.values();
  if (habits.exchanges_heads) {
    // By head, by rank, and into the order of the sequence; back, the first of these is a sum into
    // zeros (core/ssm/gated_delta_net/common.py a2a_cp_to_hp, a2a_hp_to_cp).
    const std::int64_t projected = attention.mixed() + v + 2 * attention.value_heads;
    all.convolution.forward += 3 * 2 * projected;
    all.convolution.backward += (2 * 2 + 1 + 3) * projected;
    all.gated_output.forward += 2 * 2 * v;
    all.gated_output.backward += 2 * 2 * v;
  }
  if (habits.turns_samples) {
    all.gated_output.forward += 2 * v;
    all.gated_output.backward += 2 * v;
  }
  add(Module::convolution, all.convolution);
  add(Module::delta_rule, all.rule);
  add(Module::gated_output, all.gated_output);
}

}  // namespace zeroplan
