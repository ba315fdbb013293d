#pragma once
// Parts of a JSON document that several answers share.

#include <nlohmann/json.hpp>

#include "planner/fit.hpp"

namespace zeroplan {

/// Degrees of parallelism, ZeRO stage and micro-batch of a layout, by their names.
nlohmann::ordered_json degree_fields(const Layout& layout);

/// Peaks of the phases of a run, in the order in which they come.
nlohmann::ordered_json phase_list(const std::vector<PhasePeak>& phases);

/// The fields of zeroplan.fit/1, `schema` left out.
nlohmann::ordered_json fit_fields(const FitAnswer& answer);

}  // namespace zeroplan
