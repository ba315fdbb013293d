#pragma once
// The arithmetic of the ZeRO paper (Rajbhandari et al. 2020, arXiv 1910.02054).
//
// It counts what must be there, and nothing of
// how a framework brings it there. Parameters, gradients and optimizer states, divided by the stage
// of ZeRO (section 5), stay through the step. The forward pass of a layer leaves 12 elements a
// token and feature (section 3.2), divided by tensor parallelism; its backward pass frees them.
// With activation checkpointing the forward pass leaves the layer's input alone, and the backward
// pass makes the 12 again. Collectives work in place: no buffers, no workspace, no logits, and no
// allocator that wastes.

#include "cost_model/legality/legality.hpp"

namespace zeroplan {

extern const RuntimeCode paper_code;
extern const RuleBook paper_rules;

}  // namespace zeroplan
