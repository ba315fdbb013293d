#pragma once
// What do the ranks that divide one block send each other? Its runtime's program says so.

#include "cost_model/network/load_list.hpp"
#include "cost_model/program/block.hpp"
#include "cost_model/rank/layer_part.hpp"

namespace zeroplan {

/// The calls that are not among `known`: what recompute adds.
std::vector<Call> calls_beyond(const std::vector<Call>& calls, const std::vector<Call>& known);

/// The calls of this part of a layer that are sent at all, in the groups of the layout.
std::vector<CollectiveLoad> loads_of(const Problem& problem,
                                     const std::vector<Call>& calls,
                                     LayerPart part = LayerPart::whole);

}  // namespace zeroplan
