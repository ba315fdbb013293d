#pragma once
// Private to the page: the question asked again with one thing changed.

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/out/cost.hpp"
#include "cli/request/arguments.hpp"
#include "planner/fit.hpp"

namespace zeroplan {

/// The question of `answer` about so many GPUs, whose kind a cluster of one's own says itself.
LayoutArguments on_gpus(LayoutArguments question, const FitAnswer& answer, std::int64_t count);

/// Half, as many and twice the GPUs; half, the same and twice the length; other GPUs. Each an
/// object with `axis`, `value`, `same` where nothing was changed, and `fit` or `refused`. What was
/// given stays, what was not is chosen anew.
nlohmann::ordered_json sensitivity(const FitAnswer& answer,
                                   const LayoutArguments& asked,
                                   const std::optional<CostQuestion>& cost);

/// The answer's layout with each ZeRO stage: `stage`, and `fit` or `refused`.
nlohmann::ordered_json zero_stages(const FitAnswer& answer, const LayoutArguments& asked);

}  // namespace zeroplan
