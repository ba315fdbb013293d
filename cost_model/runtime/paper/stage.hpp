#pragma once
// A pipeline rank in the arithmetic of the ZeRO paper, as a step program.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

StageProgram paper_stage(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage);

/// What replicas send in a step (ZeRO section 7), and a block by itself
/// (question/runtime_code.hpp).
std::vector<Call> paper_update_calls(const Problem& problem,
                                     const WeightInventory& inventory,
                                     const Stage& stage);
Block paper_block(const Problem& problem,
                  const WeightInventory& inventory,
                  BlockKind block,
                  LayerKind layer,
                  RepeatSet policy);

}  // namespace zeroplan
