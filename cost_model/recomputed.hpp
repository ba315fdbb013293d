#pragma once
// Which parts of a layer run forward a second time, before their backward pass.

#include <string_view>

#include "cost_model/problem.hpp"
#include "cost_model/stages.hpp"

namespace zeroplan {

/// The name of core attention beside those of linears (layer_gemms.hpp) and of memory-bound kernels
/// (layer_traffic.hpp).
inline constexpr std::string_view core_attention_module = "core attention";

/// Whether selective recompute of Megatron-Core drops what this module makes
/// (transformer_config.py, recompute_modules). moe is all of an expert layer but its norm: whoever
/// drops it drops moe_act and shared_experts with it.
bool drops(const Problem& problem, RecomputeModule module);

/// Whether the layout's recompute policy repeats this part of a layer of this kind. Full repeats
/// all of it. Selective: in Megatron-Core the modules chosen; in torchtitan every second matrix
/// product and all that is cheap (distributed/activation_checkpoint.py), or all of every Nth layer;
/// in other runtimes nothing. Speaks of a layer that recomputed_layers counts.
bool is_recomputed(const Problem& problem, LayerKind kind, std::string_view module);

/// Layers of `stage` of this kind to which the policy applies. All, but for Megatron-Core's
/// block method, which takes the first ones of each chunk (core/transformer/transformer_block.py),
/// and torchtitan's selective recompute of every Nth layer.
std::int64_t recomputed_layers(const Problem& problem, const Stage& stage, LayerKind kind);

/// The same of one chunk.
std::int64_t recomputed_layers(const Problem& problem, const LayerRange& chunk, LayerKind kind);

}  // namespace zeroplan
