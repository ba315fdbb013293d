#pragma once
// Which parts of a layer run forward a second time, before their backward pass.

#include <boost/container/small_vector.hpp>
#include <optional>
#include <vector>

#include "cost_model/question/problem.hpp"
#include "cost_model/rank/layer_part.hpp"
#include "cost_model/rank/stages.hpp"

namespace zeroplan {

/// What of a layer runs again, as bits (RepeatSet): Megatron-Core's modules by their number, and
/// these two. Which kernels those are, each runtime's program says.
inline constexpr RepeatSet titan_repeats = RepeatSet{1} << 30;
inline constexpr RepeatSet whole_layer = RepeatSet{1} << 31;
constexpr RepeatSet bit_of(RecomputeModule module) {
  return RepeatSet{1} << static_cast<unsigned>(module);
}

/// What of a layer runs again under the layout's recompute policy, of the layers that
/// recomputed_layers counts. Full repeats all of a layer. Selective: in Megatron-Core the modules
/// chosen; in torchtitan every second matrix product and all that is cheap
/// (distributed/activation_checkpoint.py), or all of every Nth layer; in other runtimes nothing.
RepeatSet repeats(const Problem& problem);

/// The set without modules that run again inside another of it. What it repeats is then the sum of
/// what each of its bits does.
RepeatSet without_contained(RepeatSet set);

/// What of a set repeats anything in a part of a layer.
constexpr RepeatSet repeated_in(LayerPart part, RepeatSet set) {
  using enum RecomputeModule;
  constexpr RepeatSet of_rest = bit_of(core_attn) | bit_of(mla_up_proj) | bit_of(gdn_norm_out) |
                                bit_of(layernorm) | bit_of(shared_experts);
  return has_rest(part) ? set : set & ~of_rest;
}

/// The layers of a chunk of which the recompute policy takes all: every Nth one (0: not by number),
/// or so many at its beginning; else each. And what runs again of the others.
struct RepeatedLayers {
  std::int64_t every = 0;
  std::optional<std::int64_t> first = {};
  RepeatSet others = 0;

  bool has(std::int64_t place) const {
    if (every > 0) return (place + 1) % every == 0;
    return !first || place < *first;
  }
};

/// The layers that the layout's policy takes, where it has one.
RepeatedLayers repeated_layers(const Problem& problem);

/// A layer of an MTP module, and whether the policy takes it.
struct MtpLayer {
  LayerKind kind;
  bool repeated;
};
using MtpLayers = boost::container::small_vector<MtpLayer, 4>;

/// Those of a module, in model order. Block recompute leaves one alone that is the module's only
/// layer, and takes the first ones of several (Megatron-LM @d98e8a64dd
/// core/transformer/multi_token_prediction.py, core/models/hybrid/hybrid_block.py
/// _checkpointed_forward).
MtpLayers mtp_layers(const Problem& problem);

/// What runs again in a runtime that repeats all of all layers or nothing.
inline RepeatSet repeats_no_part(const Problem&) {
  return 0;
}
inline RepeatedLayers repeats_all_layers(const Problem&) {
  return {};
}

/// For which of Megatron-Core's modules what this one makes is dropped (transformer_config.py,
/// recompute_modules). moe is all of an expert layer but its norm: whoever drops it drops moe_act
/// and shared_experts with it.
RepeatSet repeated_by(RecomputeModule module);

/// Whether selective recompute of Megatron-Core drops what this module makes.
bool drops(const Problem& problem, RecomputeModule module);

/// Whether Megatron-Core runs the norm before attention as a module of its own, which alone
/// `layernorm` recompute drops (core/transformer/transformer_layer.py, recompute_input_layernorm).
/// Its local layers do. Transformer Engine has it fused into the linear of queries, keys and values
/// (core/models/gpt/gpt_layer_specs.py, TELayerNormColumnParallelLinear), but for latent attention.
bool has_own_input_norm(const Problem& problem);

/// Whether Megatron-Core runs the norm before the MLP of such a layer as a module of its own: local
/// layers do; Transformer Engine has it fused into fc1, but before experts.
bool has_own_pre_mlp_norm(const Problem& problem, LayerKind kind);

/// Whether Megatron-Core's `layernorm` recompute drops anything of this model.
bool has_own_norms(const Problem& problem);

/// Whether the policy applies to this layer of the model, which stands in `chunk`: to all, but for
/// Megatron-Core's block method, which takes the first ones of each chunk
/// (core/transformer/transformer_block.py) as FSDP2's recompute_num_layers does, and torchtitan's
/// selective recompute of every Nth layer (distributed/activation_checkpoint.py _apply_layer_sac).
/// The latter counts in each rank anew, here in each chunk of a rank too, so that equal chunks take
/// equally long.
bool recomputes_layer(const Problem& problem, const LayerRange& chunk, std::int64_t layer);

/// How many layers of this kind of `stage` the recompute policy applies to.
std::int64_t recomputed_layers(const Problem& problem, const Stage& stage, LayerKind kind);

/// How many layers of this kind the recompute policy applies to of one chunk that has `count`.
std::int64_t recomputed_layers(const Problem& problem,
                               const LayerRange& chunk,
                               LayerKind kind,
                               std::int64_t count);

}  // namespace zeroplan
