#pragma once
// The layers of a chunk where groups of what they keep wait on the host.

#include <memory>
#include <vector>

#include "cost_model/program/footprint.hpp"
#include "cost_model/runtime/megatron/host_groups.hpp"

namespace zeroplan {

using LayerBlocks = std::vector<std::shared_ptr<const FoldedBlock>>;

/// A block for each layer of a chunk, those of MTP modules last; none where no module is asked for.
LayerBlocks layers_with_groups(const Problem& problem,
                               const Stage& stage,
                               std::size_t chunk,
                               InFlight in_flight);

/// What modules of a chunk's layers leave for the host, of one micro-batch.
Bytes moved_by_chunk(const Problem& problem, const Stage& stage, std::size_t chunk);

}  // namespace zeroplan
