#pragma once
// Megatron-Core, in Megatron-LM's training loop.
//
// Before the first step it builds its modules, then one buffer for all parameters and one for all
// main gradients (fp32), which take the modules' weights over; both exist together for a moment.
// Layers are Transformer Engine's: norm and linear are one module, which saves the norm's output;
// tensor parallelism sums after attention and after the MLP, or, with sequence parallelism, gathers
// before them, scatters after them, and gathers again for the weight gradients, which are added to
// the main gradients inside the matrix product. Before Transformer Engine layers were Megatron-LM's
// own. Linear attention projects all that it reads at once, and runs flash-linear-attention's
// kernels between functions that PyTorch compiles; context parallelism divides its heads, not its
// tokens. A stage keeps the inputs of the micro-batches in flight, 1F1B or interleaved over chunks.
// Gradients are reduced once a step in the buffer: all-reduced by DDP (ZeRO 0), scattered by the
// distributed optimizer (1), which steps on fp32 shards and gathers 16-bit parameters.
// Megatron-FSDP (2, 3) gathers and reduces layers each micro-batch, bucket by bucket, and runs no
// pipeline. Experts receive their tokens by all-to-all and have a data-parallel group of their own.
// The allocator is PyTorch's; what it wastes on one rank differs from its neighbour's.

#include "cost_model/legality/legality.hpp"
#include "cost_model/states/buffers.hpp"

namespace zeroplan {

extern const RuntimeCode megatron_code;
extern const RuleBook megatron_rules;

std::vector<std::int64_t> megatron_split(const Problem& problem);
bool has_megatron_split(const Problem& problem);
std::int64_t most_megatron_chunks(const ModelSpec& model, const RuntimeSpec& runtime);

RepeatSet megatron_repeats(const Problem& problem);
RepeatedLayers megatron_repeated_layers(const Problem& problem);

StateRecipe megatron_state_recipe(const Problem& problem);
/// Whether experts have buffers and an optimizer of their own, since other ranks divide them than
/// the rest (TransformerEngine's linears in core/extensions/transformer_engine.py, use_expert_pgs).
inline bool has_expert_buffers(const Problem& p) {
  return p.model.moe && (p.layout.ep > 1 || p.layout.etp != p.layout.tp);
}
/// Whether FusedAdam reads narrow moments through fp32 copies, of all parameters at once, and
/// narrows them again one after the other (TransformerEngine @d0067d0da
/// pytorch/optimizers/fused_adam.py).
bool widens_moments(const Problem& problem);
Bytes megatron_held_buffers(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage);
std::vector<Workspace> megatron_workspaces(const Problem& problem,
                                           const WeightInventory& inventory,
                                           const Stage& stage);

KernelHabits megatron_kernels(const Problem& problem);
Behind megatron_replicas(const Problem& problem, const CollectiveLoad& load);
Behind megatron_context(const Problem& problem, const CollectiveLoad& load);
Behind megatron_experts(const Problem& problem, const CollectiveLoad& load);

/// How far a step may be off: on Transformer Engine by the GPU's generation, the width of products
/// and whether the model has experts; wider where nobody published such runs, and where a layer
/// waits for its host.
StepBand megatron_step_band(const Problem& problem);

/// Whether a layer's launches take far longer than its kernels.
bool waits_for_host(const Problem& problem);

std::vector<std::string> megatron_assumptions(const Problem& problem);
LayerChoices megatron_layer_choices(const GivenSettings& given, Recompute policy);
std::vector<ShardingSettings> megatron_knobs(const GivenSettings& given, const Problem& so_far);
void take_megatron_layout(const RuntimeSpec& asked, const Layout& layout, RuntimeSpec& taken);

}  // namespace zeroplan
