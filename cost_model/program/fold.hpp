#pragma once
// Folding: a program as closed sums. A block's events become a footprint once; a step is then
// arithmetic over footprints.

#include "cost_model/program/schedule.hpp"
#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// The highest moment of one steady step of a pipeline rank, by footprints of its chunks.
Moment fold_step(const StageProgram& program, const std::vector<Pass>& order);

}  // namespace zeroplan
