#pragma once
// A pipeline rank in the arithmetic of the ZeRO paper, as a step program.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

StageProgram paper_stage(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage);

}  // namespace zeroplan
