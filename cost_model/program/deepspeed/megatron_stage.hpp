#pragma once
// A pipeline rank of Megatron-DeepSpeed as a step program.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// Megatron-LM's own layers in DeepSpeed's pipeline engine: each stage's input and output are sent
/// in tensor-parallel parts and made whole again; the last stage keeps the fp32 logits of two
/// micro-batches. Sources: deepspeedai/DeepSpeed v0.5.10 runtime/pipe/engine.py, runtime/utils.py;
/// bigscience-workshop/Megatron-DeepSpeed @00f5f889 megatron/model/transformer.py.
StageProgram megatron_deepspeed_stage(const Problem& problem,
                                      const WeightInventory& inventory,
                                      const Stage& stage);

}  // namespace zeroplan
