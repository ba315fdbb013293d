#pragma once
// What ZeRO adds to each pass of a unit in zeroplan's own engine.

#include "cost_model/program/block.hpp"
#include "cost_model/program/layer_shape.hpp"

namespace zeroplan {

/// The buffers of one pass of a unit.
class ZeroplanUnit {
 public:
  /// `bytes`: of the unit's parameters in bf16, padding included.
  ZeroplanUnit(const Problem& problem, Bytes bytes) : zero_(problem.layout.zero), bytes_(bytes) {}

  void begin_forward(BlockWriter& w) { gathered_ = gather(w); }
  void end_forward(BlockWriter& w) { w.free(gathered_); }
  void begin_backward(BlockWriter& w) {
    gathered_ = gather(w);
    const bool divides = zero_ >= ZeroStage::gradients;
    bucket_ = w.allocate("bucket of gradients", divides ? bytes_ : Bytes{},
                         Category::communication_buffers);
  }
  void end_backward(BlockWriter& w) {
    w.free(gathered_);
    w.free(bucket_);
  }

 private:
  Tensor gather(BlockWriter& w) const {
    const bool divides = zero_ >= ZeroStage::parameters;
    return w.allocate("gathered parameters", divides ? bytes_ : Bytes{},
                      Category::communication_buffers);
  }

  ZeroStage zero_;
  Bytes bytes_;
  Tensor gathered_ = BlockWriter::none;
  Tensor bucket_ = BlockWriter::none;
};

/// The embedding, one layer, or the head of zeroplan's own engine.
Block zeroplan_embedding(const LayerShape& shape, ZeroplanUnit unit);
Block zeroplan_layer(const LayerShape& shape, ZeroplanUnit unit);
Block zeroplan_head(const LayerShape& shape, std::int64_t vocabulary_rows, ZeroplanUnit unit);

}  // namespace zeroplan
