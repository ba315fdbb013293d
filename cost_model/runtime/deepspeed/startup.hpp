#pragma once
// What a DeepSpeed rank makes before the first step.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// FP16_Optimizer and BF16_Optimizer make the flat buffer beside the modules' own weights, the
/// former out of clones; ZeRO moves those to the host first. FP16_Optimizer, and before 0.13 and
/// 0.15 the others, then take a step with gradients of zero, so that the moments are there from the
/// start. A checkpoint is read to the host. Sources: deepspeedai/DeepSpeed
/// runtime/fp16/fused_optimizer.py, runtime/bf16_optimizer.py _setup_for_real_optimizer,
/// runtime/zero/stage_1_and_2.py, runtime/engine.py load_checkpoint.
Startup deepspeed_startup(const Problem& problem,
                          const WeightInventory& inventory,
                          const Stage& stage,
                          const StageProgram& program);

}  // namespace zeroplan
