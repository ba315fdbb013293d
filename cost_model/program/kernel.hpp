#pragma once
// What a block computes, by the names of its modules. How large each is, and how long it takes,
// kernel/module_time.hpp says.

#include <array>
#include <cstdint>
#include <string_view>

#include "cost_model/question/names.hpp"

namespace zeroplan {

/// Which of a module's computations: its forward pass, or a gradient. With y = x W^T a linear's
/// products have the layouts TN, NN and NT; modules without weights have two.
enum class Product : std::uint8_t { forward, input_gradient, weight_gradient };

template <>
struct Spellings<Product> {
  static constexpr std::array<std::string_view, 3> value{"forward", "input gradient",
                                                         "weight gradient"};
};

/// What a model is made of: linears by the names of their weights (rank/weights.hpp), or joined by
/// those of Megatron-Core's modules; then all else.
enum class Module : std::uint8_t {
  qkv,
  q,
  q_down,
  q_up,
  kv_down,
  kv_up,
  proj,
  router,           // with its scores
  fc1_latent_proj,  // what experts read of the stream
  fc2_latent_proj,  // and back
  fc1,
  fc2,
  shared_fc1,
  shared_fc2,
  shared_gate,
  q_proj,
  k_proj,
  v_proj,
  o_proj,
  q_a_proj,
  q_b_proj,
  kv_a_proj,
  kv_b_proj,
  gate_proj,
  up_proj,
  down_proj,
  shared_gate_proj,
  shared_up_proj,
  shared_down_proj,
  shared_expert_gate,
  in_proj,  // of linear attention, as are all from here
  in_proj_qkvz,
  in_proj_ba,
  in_proj_qkv,
  in_proj_z,
  in_proj_b,
  in_proj_a,
  eh_proj,       // of a multi-token-prediction module
  embedding,     // of words and positions, with norm and dropout
  input_norm,    // before attention
  pre_mlp_norm,  // before MLP or experts
  post_norm,     // each of those after them
  latent_norm,
  query_key_norm,
  qkv_split,
  rotary,
  core_attention,
  convolution,   // of linear attention, with the copies around it
  delta_rule,    // of the same, with its rates
  state_scan,    // of a state space, with its time steps
  gated_output,  // a norm of what that gives, and its gate
  residual,      // each of both
  rank_order,    // each half's copies of what tensor parallelism gathered, and will reduce
  activation,
  shared_activation,
  shared_sum,  // of shared experts and routed ones
  permute,     // and sort by expert; there and back
  expert_activation,
  expert_bias,
  casts,         // of what linears multiply
  gradient_sum,  // of all the layer's weights
  final_norm,
  output_layer,  // tied to the embedding or not, with the projection before it
  loss,
  gradient_of_parts,  // beside a loss in parts: their sum
};

template <>
struct Spellings<Module> {
  static constexpr std::array<std::string_view, 65> value{
      "qkv",
      "q",
      "q_down",
      "q_up",
      "kv_down",
      "kv_up",
      "proj",
      "router",
      "fc1_latent_proj",
      "fc2_latent_proj",
      "fc1",
      "fc2",
      "shared_fc1",
      "shared_fc2",
      "shared_gate",
      "q_proj",
      "k_proj",
      "v_proj",
      "o_proj",
      "q_a_proj",
      "q_b_proj",
      "kv_a_proj",
      "kv_b_proj",
      "gate_proj",
      "up_proj",
      "down_proj",
      "shared_gate_proj",
      "shared_up_proj",
      "shared_down_proj",
      "shared_expert_gate",
      "in_proj",
      "in_proj_qkvz",
      "in_proj_ba",
      "in_proj_qkv",
      "in_proj_z",
      "in_proj_b",
      "in_proj_a",
      "eh_proj",
      "embedding",
      "input norm",
      "pre-mlp norm",
      "post norm",
      "latent norm",
      "query-key norm",
      "qkv split",
      "rotary",
      "core attention",
      "convolution",
      "delta rule",
      "state scan",
      "gated output",
      "residual",
      "rank_order",
      "activation",
      "shared activation",
      "shared sum",
      "permute",
      "expert activation",
      "expert bias",
      "casts",
      "gradient sum",
      "final norm",
      "output layer",
      "loss",
      "gradient of parts",
  };
};

/// One of its computations. A forward one in a backward pass is what recompute repeats.
struct Kernel {
  Module module{};
  Product product = Product::forward;
  std::int32_t times = 1;  // in a row, of as many parts
  friend auto operator<=>(const Kernel&, const Kernel&) = default;
};

}  // namespace zeroplan
