#pragma once
// A block's events, summed up once: what a pass leaves behind, and its highest moment.

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

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

/// A footprint's bytes of all categories together: the same folds, many times as fast.
struct PassBytes {
  Bytes left;
  Bytes peak;

  PassBytes() = default;
  PassBytes(Bytes left_behind, Bytes highest) : left(left_behind), peak(highest) {}
  PassBytes(const Footprint& f)  // NOLINT: the same thing
      : left(f.left.allocated()), peak(f.peak.live.allocated()) {}
};

/// Adds so many equal passes in a row: the live bytes move by the same amount each time, so the
/// highest moment is in the first or the last.
inline void add_run(PassBytes& total, const PassBytes& each, std::int64_t count) {
  const Bytes before_highest = std::max(Bytes{}, (count - 1) * each.left);
  total.peak = std::max(total.peak, total.left + before_highest + each.peak);
  total.left += count * each.left;
}

/// Where a backward pass first computes a weight gradient: of fc1 or fc2, which in a layer with
/// experts are theirs, and of another module. Its end, where it computes none.
struct FirstWeights {
  std::size_t mlp = 0;
  std::size_t other = 0;
};
FirstWeights first_weights(const Block& block);

/// All that a block's passes inside a chain tell in bytes.
struct BlockBytes {
  std::array<PassBytes, 2> forward;   // by whether the input is borrowed
  std::array<PassBytes, 4> backward;  // of whole passes, by what is borrowed
  // Their highest before, between and after the two first_weights.
  std::array<std::array<Bytes, 3>, 4> around_weights;
  bool mlp_first = false;
  Bytes output;

  static constexpr std::size_t index(Borrowed borrowed) {
    return (borrowed.input ? 1 : 0) + (borrowed.output_grad ? 2 : 0);
  }
};

BlockBytes block_bytes(const Block& block);

/// The bytes of a block that is one of two: wherever it stands, live bytes are at no moment above
/// those with either. Empty where the two compute weight gradients in another order.
std::optional<BlockBytes> least_of(const BlockBytes& a, const BlockBytes& b);

/// The bytes of a block whose forward pass stands by itself: a step of the optimizer, a checkpoint.
PassBytes forward_bytes(const Block& block);

/// A block with what its passes leave and need inside a chain. `loss`: they are of that phase.
class FoldedBlock {
 public:
  FoldedBlock(Block block, bool loss);
  /// Without its events, which take ten times the memory of the rest: they are written once more
  /// when they are asked for. Then not for use by several threads at once.
  FoldedBlock(std::function<Block()> write, bool loss);

  const Block& block() const {
    if (!block_) block_ = write_();
    return *block_;
  }

  /// A pass by category, folded when asked for, but for a forward pass that borrows nothing.
  Footprint forward_with(Borrowed borrowed) const;
  Footprint backward_with(BackwardPart part, Borrowed borrowed) const;

  const bool loss;
  Footprint forward;
  BlockBytes bytes;

 private:
  void sum_up(Block&& block);

  mutable std::optional<Block> block_;
  std::function<Block()> write_;
};

inline Phase forward_phase(const FoldedBlock& block) {
  return block.loss ? Phase::loss : Phase::forward;
}
inline Phase backward_phase(const FoldedBlock& block) {
  return block.loss ? Phase::loss : Phase::backward;
}

inline std::shared_ptr<const FoldedBlock> folded(Block block, bool loss = false) {
  return std::make_shared<const FoldedBlock>(std::move(block), loss);
}

}  // namespace zeroplan
