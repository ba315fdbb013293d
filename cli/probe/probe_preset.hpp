#pragma once
// What a probe saw, as a cluster that the planner reads.

#include <string>

#include "gpu_probe/facts.hpp"

namespace zeroplan {

/// A cluster preset of this one machine (presets/catalog.hpp reads it): the GPU by its catalog
/// name with the memory that the driver reports, its collectives as tables, and under "measured"
/// everything else with its samples. A GPU that the catalog does not know is described by the rates
/// it reached, which the note says. A network is not measured: none is written.
std::string probe_preset(const ProbeFacts& facts);

/// What a probe saw, for people: a line a fact, medians alone.
std::string probe_text(const ProbeFacts& facts);

}  // namespace zeroplan
