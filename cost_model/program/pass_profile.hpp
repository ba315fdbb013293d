#pragma once
// How many micro-batches and border tensors a rank's schedule keeps alive together, with the sizes
// of its chunks left open: the highest moment of its passes is then a maximum of few sums.

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

class PassProfile {
 public:
  /// Of whole backward passes; the program's chunks are alike in every micro-batch. Of the program
  /// it reads where they stand. `kinds`: of each chunk, the number of its kind among them.
  PassProfile(const StageProgram& program,
              const std::vector<std::int32_t>& kinds,
              const std::vector<Pass>& order);

  /// The bytes that fold_passes finds at its highest moment, for every program whose chunks are
  /// alike in the same way. `sizes`: of each kind of chunk, in the order of the first of each.
  /// Empty where forward passes free more than they leave, so that more of them in flight are less.
  std::optional<Bytes> highest(std::span<const ChunkBytes> sizes, Bytes boundary) const;

 private:
  friend class CountingSink;

  // A moment of the step that no other one with the same event exceeds in all its counts.
  struct State {
    std::int32_t event = 0;  // border: 0; forward pass of kind k: 1 + 2 k; backward pass: 2 + 2 k
    std::vector<std::int32_t> alive;  // micro-batches of each kind of chunk, then border tensors
  };
  void add(State state);

  std::vector<State> states_;
  std::vector<bool> receives_;  // each kind of chunk
};

}  // namespace zeroplan
