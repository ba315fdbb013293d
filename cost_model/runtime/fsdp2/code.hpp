#pragma once
// PyTorch FSDP2 under torchtitan's training loop, or around Hugging Face's layers.
//
// Each rank keeps its rows of every parameter, of its gradient and of both moments (fp32 in
// torchtitan); nothing is whole between steps. The unit is what fully_shard wraps: the embedding,
// each layer, the head with the final norm. One unit ahead of its layer, on a stream of its own,
// the rows of all are gathered into one buffer in 16 bits, copied out into parameters, and the
// buffer is held until the next unit's gather has begun; after the forward pass the parameters are
// freed (ZeRO 3), or stay until the backward pass (ZeRO 2), as the head does. The backward pass
// gathers again, in reverse order; then gradients are copied, widened to fp32, into the order of
// the ranks and scattered, each micro-batch anew. Under HSDP replicas sum the shards afterwards,
// and the sums stay until the backward pass is over. A pipeline gathers once before its passes,
// adds gradients up whole and reduces after the last. torchtitan's loss runs the output layer part
// by part and gathers its unit for itself; under a CUDA graph, its default since 2026-08, gradients
// live from step to step. Hugging Face's layers are wrapped by accelerate, computed with the loss
// inside the root's forward pass, and reduced after the last micro-batch alone. Layers are plain
// modules: each operator saves what autograd saves, unless compiled.

#include "cost_model/legality/legality.hpp"

namespace zeroplan {

extern const RuntimeCode fsdp2_code;
extern const RuleBook fsdp2_rules;

RepeatSet fsdp2_repeats(const Problem& problem);
RepeatedLayers fsdp2_repeated_layers(const Problem& problem);

StateRecipe fsdp2_state_recipe(const Problem& problem);

LayerChoices fsdp2_layer_choices(const GivenSettings& given, Recompute policy);
std::vector<ShardingSettings> fsdp2_knobs(const GivenSettings& given, const Problem& so_far);
void take_fsdp2_layout(const RuntimeSpec& asked, const Layout& layout, RuntimeSpec& taken);

}  // namespace zeroplan
