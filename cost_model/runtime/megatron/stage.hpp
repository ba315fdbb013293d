#pragma once
// A pipeline rank of Megatron-Core as a step program.

#include "cost_model/program/stage_program.hpp"
#include "cost_model/runtime/megatron/blocks.hpp"

namespace zeroplan {

/// The layers that are one block: several where full recompute runs them again together.
inline std::int64_t megatron_layers_of_block(const Problem& problem) {
  const MegatronSettings& set = problem.runtime.megatron;
  const bool together = problem.layout.recompute == Recompute::full &&
                        set.recompute_method == RecomputeMethod::uniform;
  return together ? std::max<std::int64_t>(1, set.recompute_num_layers) : 1;
}

/// The resident states of a rank: beside its optimizer step all of its program that ZeRO, HSDP and
/// offload decide.
std::vector<TensorSpec> megatron_states(const Problem& problem,
                                        const WeightInventory& inventory,
                                        const Stage& stage,
                                        const ModelStates& states);
/// The optimizer step of a rank. `kept`: megatron_kept_inputs, which stays through the step.
Block megatron_optimizer_step(const Problem& problem,
                              const WeightInventory& inventory,
                              const Stage& stage,
                              const ModelStates& states,
                              Bytes kept);

/// The buffers that stay on a rank besides its states: ZeRO, HSDP and offload decide neither them
/// nor the passes.
std::vector<TensorSpec> megatron_buffers(const Problem& problem,
                                         const WeightInventory& inventory,
                                         const Stage& stage);
Bytes megatron_boundary(const Problem& problem);

/// Inputs of the last passes with their gradients, which modules hold until they run again: that of
/// each chunk which receives one (Megatron-LM set_input_tensor), and those of checkpoints around
/// experts. Where those passes are, all of it is counted as in flight. `boundary`:
/// megatron_boundary.
Bytes megatron_kept_inputs(const Problem& problem, const Stage& stage, Bytes boundary);
/// Whether the passes of a chunk differ by micro-batch, or chunks of alike layers do.
inline bool megatron_passes_differ(const Problem& problem) {
  return problem.runtime.megatron.offload_modules != 0 && problem.layout.pp > 1;
}

Runs megatron_layers(const Problem& problem, const MegatronBlocks& blocks, const LayerRange& range);
ChunkProgram megatron_chunk(const Problem& problem,
                            const MegatronBlocks& blocks,
                            const Stage& stage,
                            std::size_t i);
StageProgram megatron_chunks(const Problem& problem,
                             const MegatronBlocks& blocks,
                             const Stage& stage);
StageProgram megatron_passes(const Problem& problem,
                             const WeightInventory& inventory,
                             const MegatronBlocks& blocks,
                             const Stage& stage);

/// What keeps the replicas of a rank alike: main gradients, fp32 unless grad_reduce_in_bf16, in one
/// buffer; under Megatron-FSDP those of each micro-batch, in the parameters' format. Then tied
/// embeddings, and what sequence parallelism leaves each rank part of. Sources: Megatron-LM
/// core/distributed/param_and_grad_buffer.py, core/distributed/fsdp/src, and
/// core/distributed/finalize_model_grads.py.
std::vector<Call> megatron_update_calls(const Problem& problem,
                                        const WeightInventory& inventory,
                                        const Stage& stage);

/// The program of a pipeline rank on Megatron-Core: states and optimizer step, buffers and passes.
/// Sources: Megatron-LM core/distributed/param_and_grad_buffer.py,
/// core/optimizer/distrib_optimizer.py and megatron/layer.hpp.
StageProgram megatron_stage(const Problem& problem,
                            const WeightInventory& inventory,
                            const MegatronBlocks& blocks,
                            const Stage& stage);

/// Everything before the first step: modules, the buffers that take over their weights, what the
/// optimizer holds. A resumed run makes its moments twice: the distributed optimizer those that the
/// checkpoint is read into, then FusedAdam its own.
/// Sources: Megatron-LM core/optimizer/distrib_optimizer.py load_state_dict; NVIDIA-NeMo
/// Megatron-Bridge pull request 4936, which measured it.
Startup megatron_startup(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const StageProgram& program);

/// The highest moment of the time before the first step in which modules and buffers coexist;
/// `resident` is the sum of megatron_states.
Moment megatron_construction(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage,
                             const MemoryBreakdown& resident);

}  // namespace zeroplan
