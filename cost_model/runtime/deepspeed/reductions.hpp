#pragma once
// The reductions that buckets ask for in the backward passes of layers, and which of them is the
// one beside which most lives.

#include <optional>
#include <span>
#include <vector>

#include "cost_model/program/block.hpp"
#include "cost_model/runtime/deepspeed/buckets.hpp"

namespace zeroplan {

/// A reduction in the backward pass of a layer, when a gradient of so many elements finds no room
/// in the bucket, of those that are as large the one with so many before it in the pass.
struct Reduction {
  std::int64_t layer = 0;
  std::int64_t elements = 0, before = 0;
  std::int64_t copied = 0;  // elements
  std::int64_t live = 0;    // gathered parameters, elements
};

/// The reductions in the layers of a model whose tensors have these `sizes` in model order.
/// `begins`: the first tensor of each layer, and of the head. `live`: what is gathered beside the
/// gradient of each tensor, where parameters are. What the gradient of the embedding or of the head
/// asks for is not among them.
std::vector<Reduction> reductions_in_layers(const std::vector<BucketCopy>& copies,
                                            const std::vector<std::int64_t>& sizes,
                                            const std::vector<std::size_t>& begins,
                                            const std::vector<std::int64_t>& live);

/// What a layer's block leaves in its forward pass, and what its backward pass has added to that,
/// less what is gone, when each gradient is there.
struct LayerLevels {
  struct Gradient {
    Bytes bytes;
    Bytes above;
  };
  Bytes left;
  std::vector<Gradient> gradients;
  Bytes at_end;
};

/// The levels of a layer whose block reduces nothing.
LayerLevels levels_of(const Block& layer);

/// The first of the reductions that stand highest. `levels`: of each layer; `element`: bytes of a
/// gradient's, of what is copied and of what is gathered.
std::optional<Reduction> highest(std::span<const Reduction> reductions,
                                 const std::vector<const LayerLevels*>& levels,
                                 std::int64_t element);

}  // namespace zeroplan
