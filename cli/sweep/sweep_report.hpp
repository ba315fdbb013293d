#pragma once
// The answer of a sweep as text, JSON and rows.

#include <string>

#include "cli/out/report.hpp"
#include "planner/sweep/sweep.hpp"

namespace zeroplan {

/// The fixed document zeroplan.sweep/1. `pareto` says which of `plans` no other of them beats in
/// both time and memory; `front`, where it was found, lists that of the whole space, by prediction
/// without replay. With `cost` each plan has `training`.
std::string sweep_json(const SweepAnswer& answer,
                       const SweepQuestion& question,
                       const std::optional<CostQuestion>& cost);

/// One row a plan.
std::string sweep_csv(const SweepAnswer& answer);

/// The best plan first, then a table, the front where it was asked for, a map of tp and pp, and
/// what was looked at.
std::string sweep_text(const SweepAnswer& answer,
                       const SweepQuestion& question,
                       const std::optional<CostQuestion>& cost,
                       TextStyle style);

/// Why there is no plan: the least that an evaluated layout needs, and the first number of GPUs
/// that does; quiet: that there is none.
std::string no_plan_text(const SweepAnswer& answer, const SweepQuestion& question, bool quiet);

}  // namespace zeroplan
