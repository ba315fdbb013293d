#pragma once
// Parts of a JSON document that several answers share.

#include <nlohmann/json.hpp>

#include "cli/out/cost.hpp"
#include "cost_model/explain/bottlenecks.hpp"
#include "planner/fit.hpp"

namespace zeroplan {

/// Whether a step can be timed: a network joins the nodes, and the model has a shape, not a size
/// alone.
bool has_time(const Problem& problem, const StepTime& step);

/// Degrees of parallelism, ZeRO stage and micro-batch of a layout, by their names.
nlohmann::ordered_json degree_fields(const Layout& layout);

/// Peaks of the phases of a run, in the order in which they come.
nlohmann::ordered_json phase_list(const std::vector<PhasePeak>& phases);

/// What so many tokens take with this plan; null where no step can be timed.
nlohmann::ordered_json cost_json(const FitAnswer& plan, const CostQuestion& question);

/// The fields of zeroplan.fit/1, `schema` left out.
nlohmann::ordered_json fit_fields(const FitAnswer& answer);

/// Changes after which it fits, each with the bytes and the seconds it then takes.
nlohmann::ordered_json nearest_fits_json(const std::vector<NearestFit>& changes);

/// The slowest link between nodes.
nlohmann::ordered_json bottleneck_json(const Bottleneck& slowest);
/// Adds to a collective's row what else takes part of its uplinks, where anything does.
void add_shared(nlohmann::ordered_json& row, const std::vector<SharedUplink>& shared);

/// What the answer was made by (versions.hpp).
nlohmann::ordered_json versions_json();

}  // namespace zeroplan
