#pragma once
// A block's events, summed up once: what a pass leaves behind, and its highest moment.

#include <memory>

#include "cost_model/program/block.hpp"

namespace zeroplan {

/// The highest moment of a program: live bytes by category, and what was allocated to reach it.
struct Moment {
  MemoryBreakdown live;
  Phase phase = Phase::forward;
  std::string_view tensor;
};

/// Keeps the higher of two moments; the earlier of two that are equal.
inline void raise(Moment& peak, const Moment& candidate) {
  if (candidate.live.allocated() > peak.live.allocated()) peak = candidate;
}

/// What one pass of a block or a chunk leaves behind, and its highest moment, both above its start.
struct Footprint {
  MemoryBreakdown left;
  Moment peak;
};

/// Folds the events of one pass of a block. `keep_output_grad`: somebody else frees the gradient it
/// reads.
Footprint fold(const Block& block,
               const std::vector<Event>& events,
               Phase phase,
               bool keep_output_grad = false);

/// A block with its footprints. `phase` is that of its passes: loss for the head.
struct FoldedBlock {
  Block block;
  bool loss = false;
  Footprint forward;
  Footprint backward;
  Footprint backward_keeping_output_grad;  // where it is the last of a chunk
};

std::shared_ptr<const FoldedBlock> folded(Block block, bool loss = false);

}  // namespace zeroplan
