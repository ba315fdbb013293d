#pragma once
// A rank of DeepSpeed's data parallelism as a step program.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// Hugging Face layers run eagerly, with what ZeRO stage 0, 1, 2 or 3 does to their gradients and
/// parameters (see deepspeed/plan.hpp). Without tensor and pipeline parallelism.
StageProgram deepspeed_stage(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage);

/// What a block sends by itself (question/runtime_code.hpp).
Block deepspeed_block(const Problem& problem,
                      const WeightInventory& inventory,
                      BlockKind block,
                      LayerKind layer,
                      RepeatSet policy);

}  // namespace zeroplan
