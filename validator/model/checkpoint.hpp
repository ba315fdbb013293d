#pragma once
// The input of a recomputed layer between its passes.

#include "validator/rank.hpp"

namespace zeroplan::engine {

/// As it came; or a copy of it: of this rank's part of tp (Pa), in a buffer of the rank (MD).
class Checkpoint {
 public:
  /// Takes the input after the forward pass. `slot`: where MD has it; else empty.
  void keep(const Rank& rank, Passed input, Half slot);
  /// The whole input for the backward pass, once; all ranks of tp call it.
  Passed take(const Rank& rank);

  /// Elements of a copy.
  static std::int64_t elements(const Rank& rank);

 private:
  Passed input_;
  Tensor<Bf16> part_;
  Half copy_;  // there, or in the slot
};

}  // namespace zeroplan::engine
