#pragma once
// How many FLOPs a recorded step is.

#include "cost_model/kernel/flops.hpp"

namespace zeroplan {

/// Products and attention that no backward pass ran, for one sample, with what backward passes do
/// beyond twice as much; all ranks are taken to do as the recorded one.
std::vector<FlopTerm> recorded_flop_terms(const Problem& problem, ScoreCount count);

}  // namespace zeroplan
