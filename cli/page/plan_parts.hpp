#pragma once
// Private to the page: what is drawn of one plan beside its document.

#include <nlohmann/json.hpp>

#include "cli/request/arguments.hpp"
#include "planner/fit.hpp"

namespace zeroplan {

/// `links`: of each row of `communication` what carries it. `moves`: memory of the worst stage over
/// a step, thinned, and the tensors at its highest moment. `schedule`: the passes of every pipeline
/// rank. `launch`: the configuration of its runtime. `command`: fit of exactly this plan. Null
/// where there is none.
nlohmann::ordered_json plan_parts(const FitAnswer& answer, const LayoutArguments& asked);

}  // namespace zeroplan
