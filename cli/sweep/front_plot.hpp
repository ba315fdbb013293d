#pragma once
// The Pareto front of a sweep as a plot of text.

#include <string>

#include "cli/out/terminal.hpp"
#include "planner/sweep/sweep.hpp"

namespace zeroplan {

/// The front of the whole space over memory and speed, the plans of the list by their numbers, `*`
/// the recommended one, up to `|`, the capacity. Without letters beyond ASCII where the terminal
/// has none; empty where there is no terminal, or no front.
std::string front_plot(const SweepAnswer& answer, const SweepQuestion& question, TextStyle style);

}  // namespace zeroplan
