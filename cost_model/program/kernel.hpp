#pragma once
// What a block computes, by the names of its modules. How large each is, and how long it takes,
// kernel/module_time.hpp says.

#include <string_view>

namespace zeroplan {

/// Which of a module's computations: its forward pass, or a gradient. With y = x W^T a linear's
/// products have the layouts TN, NN and NT; modules without weights have two.
enum class Product { forward, input_gradient, weight_gradient };

/// One of them. A forward one in a backward pass is what recompute repeats.
struct Kernel {
  std::string_view module;
  Product product = Product::forward;
};

/// Modules of a layer beside its linears, which bear the names of their weights.
namespace modules {
inline constexpr std::string_view input_norm = "input norm";      // before attention
inline constexpr std::string_view pre_mlp_norm = "pre-mlp norm";  // before MLP or experts
inline constexpr std::string_view post_norm = "post norm";        // each of those after them
inline constexpr std::string_view final_norm = "final norm";      // before the head
inline constexpr std::string_view latent_norm = "latent norm";
inline constexpr std::string_view query_key_norm = "query-key norm";
inline constexpr std::string_view qkv_split = "qkv split";
inline constexpr std::string_view rotary = "rotary";
inline constexpr std::string_view core_attention = "core attention";
inline constexpr std::string_view residual = "residual";  // each of both
inline constexpr std::string_view activation = "activation";
inline constexpr std::string_view shared_activation = "shared_activation";
inline constexpr std::string_view shared_sum = "shared expert sum";  // added to the routed ones'
inline constexpr std::string_view router = "router";                 // a linear, and its scores
inline constexpr std::string_view permute = "permute";  // and sort by expert; there and back
inline constexpr std::string_view expert_activation = "expert activation";
inline constexpr std::string_view expert_bias = "expert bias";
inline constexpr std::string_view casts = "casts";                // of what linears multiply
inline constexpr std::string_view gradient_sum = "gradient sum";  // of all the layer's weights
}  // namespace modules

}  // namespace zeroplan
