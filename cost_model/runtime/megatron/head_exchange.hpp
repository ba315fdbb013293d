#pragma once
// Copies around the kernels of layers that keep a state, which read all tokens of a rank's heads.

#include "cost_model/program/block.hpp"

namespace zeroplan {

/// A copy in another order that takes another tensor's place.
inline Tensor copied(BlockWriter& w, std::string_view name, Tensor from, Bytes bytes) {
  const Tensor copy = w.temporary(name, bytes);
  w.free(from);
  return copy;
}

/// What the ranks that divide the sequence send each other, tokens for heads or back; `from` goes.
inline Tensor exchanged(BlockWriter& w, Tensor from, Bytes bytes) {
  const Tensor received = w.temporary("heads of other ranks", bytes);
  w.call("cp", Collective::all_to_all, bytes);
  w.free(from);
  return received;
}

}  // namespace zeroplan
