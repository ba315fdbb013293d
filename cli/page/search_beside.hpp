#pragma once
// Private to the page: what a search found beside the plan that is shown.

#include <nlohmann/json.hpp>

#include "cli/request/arguments.hpp"
#include "planner/fit.hpp"
#include "planner/sweep/sweep.hpp"

namespace zeroplan {

/// `answer`, the document of sweep; `capacity_bytes`; its `grid` of tp and pp, each with the least
/// `seconds_per_token` or null, and whether what was not timed was `cut`; and the `front` of all
/// layouts, where it was asked for, as `device_bytes` and `tokens_per_second_per_gpu`.
nlohmann::ordered_json search_fields(const SweepAnswer& answer, const SweepQuestion& question);

/// What search_fields has, of the search that chose the plan of `fit`: asked once more, as sweep
/// does. Null where no search chose it, or where it would take too long.
nlohmann::ordered_json search_beside(const FitAnswer& fit, const LayoutArguments& asked);

}  // namespace zeroplan
