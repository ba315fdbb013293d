#pragma once
// A block's events, summed up once: what a pass leaves behind, and its highest moment.

#include <array>
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

/// Which tensors of the chain the schedule owns, because the block stands at its end: the block
/// does not free them.
struct Borrowed {
  bool input = false;
  bool output_grad = false;
};

/// Folds the events of one pass of a block, of a backward pass only `part`.
Footprint fold(const Block& block,
               const std::vector<Event>& events,
               Phase phase,
               Borrowed borrowed = {},
               BackwardPart part = BackwardPart::whole);

/// A block with its footprints inside a chain. `loss`: its passes are of that phase.
struct FoldedBlock {
  Block block;
  bool loss = false;
  Footprint forward;
  Footprint forward_at_border;         // where the input is borrowed: at the end of a chain
  std::array<Footprint, 12> backward;  // by part, and by what is borrowed

  static constexpr std::size_t index(BackwardPart part, Borrowed borrowed) {
    return 4 * static_cast<std::size_t>(part) + (borrowed.input ? 1 : 0) +
           (borrowed.output_grad ? 2 : 0);
  }
  const Footprint& forward_with(Borrowed borrowed) const {
    return borrowed.input ? forward_at_border : forward;
  }
  const Footprint& backward_with(BackwardPart part, Borrowed borrowed) const {
    return backward[index(part, borrowed)];
  }
};

inline Phase forward_phase(const FoldedBlock& block) {
  return block.loss ? Phase::loss : Phase::forward;
}
inline Phase backward_phase(const FoldedBlock& block) {
  return block.loss ? Phase::loss : Phase::backward;
}

std::shared_ptr<const FoldedBlock> folded(Block block, bool loss = false);

}  // namespace zeroplan
