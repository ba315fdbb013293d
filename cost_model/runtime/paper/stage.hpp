#pragma once
// A pipeline rank in the arithmetic of the ZeRO paper, as a step program.
//
// The paper (Rajbhandari et al. 2020, arXiv 1910.02054) counts what must be there, and nothing of
// how a framework brings it there. Parameters, gradients and optimizer states, divided by the stage
// of ZeRO (section 5), stay through the step. The forward pass of a layer leaves 12 elements a
// token and feature (section 3.2), divided by tensor parallelism; its backward pass frees them.
// With activation checkpointing the forward pass leaves the layer's input alone, and the backward
// pass makes the 12 again. Collectives work in place: no buffers, no workspace, no logits, and no
// allocator that wastes.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

StageProgram paper_stage(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage);

}  // namespace zeroplan
