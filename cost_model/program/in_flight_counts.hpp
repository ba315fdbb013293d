#pragma once
// How many micro-batches and border tensors a rank's schedule keeps alive together, with the sizes
// of its chunks left open: the highest moment of its passes is then a maximum of few sums.

#include <boost/container/small_vector.hpp>
#include <optional>
#include <span>
#include <vector>

#include "cost_model/program/stage_program.hpp"
#include "cost_model/schedule/order.hpp"

namespace zeroplan {

/// What the passes of one chunk and one micro-batch leave and need at most, above their start.
struct ChunkBytes {
  Bytes forward_left;
  Bytes forward_peak;
  Bytes backward_left;
  Bytes backward_peak;
};

/// Whether a step's first micro-batch passes the chunks as the later ones do.
enum class FirstMicroBatch { alike, apart };

class InFlightCounts {
 public:
  /// The counts of a schedule of whole backward passes. Of the program it reads where its chunks
  /// stand. `kinds`: of each chunk, the number of its kind.
  InFlightCounts(const StageProgram& program,
                 const std::vector<std::int32_t>& kinds,
                 const std::vector<Pass>& order,
                 FirstMicroBatch first = FirstMicroBatch::alike);

  /// The bytes that fold_passes finds at its highest moment, for every program whose chunks are
  /// alike in the same way. `sizes`: of each kind of chunk, in the order of the first of each; then
  /// of each in the first micro-batch, where that is apart. Empty where forward passes free more
  /// than they leave, so that more of them in flight are less, or a pass that is done with does;
  /// but for the chunk that ends the model, where its forward and backward passes alternate.
  std::optional<Bytes> highest(std::span<const ChunkBytes> sizes, Bytes boundary) const;

  /// What all passes together leave: what those of the first micro-batch do.
  Bytes left(std::span<const ChunkBytes> sizes, Bytes boundary) const;

 private:
  friend class CountingSink;

  // A moment of the step that no other one with the same event exceeds in all its counts.
  struct State {
    std::int32_t event = 0;  // border: 0; forward pass of size k: 1 + 2 k; backward pass: 2 + 2 k
    // Micro-batches of each size; of each kind of chunk, those apart that are done; border tensors.
    boost::container::small_vector<std::int32_t, 14> alive;
  };
  void add(const State& state);

  std::size_t kinds() const { return receives_.size(); }
  bool apart() const { return first_ == FirstMicroBatch::apart; }
  std::size_t counts() const { return apart() ? 3 * kinds() + 1 : kinds() + 1; }
  Bytes remainder(std::span<const ChunkBytes> sizes, std::size_t size, Bytes boundary) const;

  FirstMicroBatch first_;
  // The kind of the chunk whose passes alternate: no count of it hides another.
  std::optional<std::size_t> alternating_;
  std::vector<State> states_;
  std::vector<bool> receives_;        // each kind of chunk
  std::vector<std::int32_t> number_;  // of chunks of each kind
};

}  // namespace zeroplan
