#pragma once
// What a family of points of FSDP2, alike but for HSDP and knobs, needs at least.

#include <vector>

#include "cost_model/remember/evaluator.hpp"
#include "planner/sweep/choices.hpp"

namespace zeroplan {

/// The points of a family that no other needs less memory than: of each choice of the knobs without
/// layers that stay gathered the one in which most ranks share the states, since every tensor is
/// then as large or smaller. Empty where shards are padded, which may make them larger, and for
/// other runtimes than FSDP2.
/// `family`: of any of its points; left with HSDP as in these.
std::vector<Sharding> leanest_of_family(const SearchSpace& space,
                                        Problem& family,
                                        const Evaluator& evaluator);

}  // namespace zeroplan
