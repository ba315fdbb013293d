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

/// The same without its blocks, and they alone: the same for all ranks that hold as many layers and
/// work on as many tokens.
StageProgram nanotron_frame(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage,
                            const ModelStates& states);
Runs nanotron_runs(const Problem& problem, const WeightInventory& inventory, const Stage& stage);

Startup nanotron_startup(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const StageProgram& program);

}  // namespace zeroplan
