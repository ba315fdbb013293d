#pragma once
// A pipeline rank of nanotron as a step program.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// 16-bit gradients of a micro-batch beside their fp32 accumulation, buckets of DDP at ZeRO 0,
/// buffers that gather for tensor parallelism, and a loss that holds the fp32 logits twice. The
/// allocator waits for what reductions still read (PyTorch 2.1). Sources: huggingface/nanotron
/// @67c5ebb6 src/nanotron/trainer.py, optim/gradient_accumulator.py, optim/zero.py,
/// parallel/pipeline_parallel/engine.py, parallel/tensor_parallel/functional.py.
StageProgram nanotron_stage(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage);

/// The program of a pipeline rank of nanotron without its blocks. `updates`: nanotron_update_calls,
/// where calls matter.
StageProgram nanotron_frame(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage,
                            const ModelStates& states,
                            const std::vector<Call>& updates = {});
/// The blocks alone of a pipeline rank of nanotron: the same for all ranks that hold as many layers
/// and work on as many tokens.
Runs nanotron_runs(const Problem& problem, const WeightInventory& inventory, const Stage& stage);

/// fp32 sums at the end of a step. Without ZeRO in DDP's buckets of so many bytes of parameters
/// (optim/gradient_accumulator.py get_fp32_accum_hook, config.py ddp_bucket_cap_mb); with ZeRO
/// whole and on every rank, "too memory hungry" to scatter (trainer.py), before each gathers what
/// the others updated (optim/zero.py). Those of the tied embedding (parallel/tied_parameters.py)
/// and of norms that tensor parallelism repeats (parallel/tensor_parallel/functional.py).
std::vector<Call> nanotron_update_calls(const Problem& problem,
                                        const WeightInventory& inventory,
                                        const Stage& stage);

/// What a block sends by itself (question/runtime_code.hpp).
Block nanotron_block(const Problem& problem,
                     const WeightInventory& inventory,
                     BlockKind block,
                     LayerKind layer,
                     RepeatSet policy);

Startup nanotron_startup(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const StageProgram& program);

}  // namespace zeroplan
