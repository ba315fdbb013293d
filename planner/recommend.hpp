#pragma once
// Which of all layouts would an engineer take? By the exact search, where a request leaves one
// open.

#include <optional>

#include "planner/sweep/search.hpp"

namespace zeroplan {

/// Whether the request leaves open what a search decides: tp, pp, ep, ZeRO stage, recompute or
/// micro-batch, where the runtime and the model have a choice. What else is not given follows where
/// these are: cp, chunks, HSDP and offload are used by who names them. Nothing is searched where no
/// step can be timed: by the ZeRO paper's arithmetic, and of a model known by its size alone.
bool leaves_layout_open(const Request& request);

/// Whether the request leaves ZeRO's stage open and the runtime has stages beside those that it is
/// usually run with, where a step can be timed. A layout that is given but for the stage is looked
/// at under these where none of the usual ones fits.
bool leaves_stage_open(const Request& request);

struct Recommendation {
  PlayedPlan plan;  // the simplest and roomiest of those that tie with the fastest
  PlayedPlan fastest;
};

/// Nothing where no layout of the space fits with its whole band.
std::optional<Recommendation> recommend(const SearchSpace& space, double tie);

/// The layout that needs fewest bytes of a GPU, whether it fits or not; its allocator replayed.
/// Nothing where the runtime can execute none, or no network joins the nodes.
std::optional<PlayedPlan> least_memory(const SearchSpace& space);

}  // namespace zeroplan
