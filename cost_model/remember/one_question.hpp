#pragma once
// What all problems have in common that one Evaluator may be asked about.

#include "cost_model/question/inputs.hpp"

namespace zeroplan {

/// Throws std::logic_error, which says what differs, where the problem asks about another model,
/// GPU, link or runtime than `question`, or has other settings than its layout makes of those that
/// were asked for: what is remembered would answer wrongly. How many GPUs there are, and how layers
/// are split over stages, is the layout's. Some hundred nanoseconds.
void require_same(const OnlyFor& question, const Problem& problem);

}  // namespace zeroplan
