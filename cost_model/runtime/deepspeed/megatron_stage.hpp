#pragma once
// A pipeline rank of Megatron-DeepSpeed as a step program.

#include "cost_model/runtime/megatron/stage.hpp"

namespace zeroplan {

/// The problem with the settings of Megatron-LM's layers before Transformer Engine: what the blocks
/// of those layers depend on. Context parallelism is Ulysses (arXiv 2309.14509).
Problem with_early_layers(const Problem& problem);

/// What a block of Megatron-DeepSpeed's layers sends by itself (question/runtime_code.hpp).
Block megatron_deepspeed_block(const Problem& problem,
                               const WeightInventory& inventory,
                               BlockKind block,
                               LayerKind layer,
                               RepeatSet repeated);

/// Megatron-LM's own layers in DeepSpeed's pipeline engine: each stage's input and output are sent
/// in tensor-parallel parts and made whole again; the last stage keeps the fp32 logits of two
/// micro-batches. `problem` and `blocks` are those of with_early_layers. Sources:
/// deepspeedai/DeepSpeed v0.5.10 runtime/pipe/engine.py, runtime/utils.py;
/// bigscience-workshop/Megatron-DeepSpeed @00f5f889 megatron/model/transformer.py.
StageProgram megatron_deepspeed_stage(const Problem& problem,
                                      const WeightInventory& inventory,
                                      const MegatronBlocks& blocks,
                                      const Stage& stage);

}  // namespace zeroplan
