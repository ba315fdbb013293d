#pragma once
// Final norm, output layer and cross entropy as plain PyTorch runs them.

#include "cost_model/program/eager/layer.hpp"

namespace zeroplan {

/// How head and loss hold the logits, E = tokens x vocabulary of this rank, at the loss's peak.
enum class LossCode {
  fp32_logits,     // the model gives fp32 logits and the loop keeps them: 16 E
  plain,           // 12 E
  parallel,        // over tensor-parallel ranks: 16 E
  chunked_logits,  // logits in parts, all log-softmax results kept: 6.5 E of 8 parts
  chunked_hidden,  // head and loss together, part by part
  compiled,        // 4 E
  huggingface,     // logits kept in the output object: 14 E
};

/// The last block of a model: writes its events into the block of whoever runs it. E logits on a
/// rank; peaks by LossCode. Sources: torchtitan components/loss.py at the dates of
/// fsdp2/recipe.cpp; torch/distributed/tensor/parallel/loss.py @02eef6b8b; transformers
/// loss/loss_utils.py @0114da07e.
class EagerHead {
 public:
  EagerHead(EagerShape shape, LossCode loss, std::int64_t chunks)
      : s_(std::move(shape)), loss_(loss), chunks_(chunks) {}

  /// From Block::input through the final norm to the logits.
  void forward(BlockWriter& w);
  /// The loss, after the model has returned. Gradients of the head's weight appear here where it
  /// works in chunks.
  void loss_forward(BlockWriter& w, const OnGradient& on_gradient);
  void loss_backward(BlockWriter& w);
  /// From the gradient of the logits to Block::input_grad.
  void backward(BlockWriter& w, const OnGradient& on_gradient);

 private:
  LocalWeight weight() const;
  std::int64_t logits() const;
  std::int64_t logit_parts() const;
  bool fused_chunks() const { return loss_ == LossCode::chunked_hidden; }
  Tensor chunk(BlockWriter& w, std::int64_t logits);

  EagerShape s_;
  LossCode loss_;
  std::int64_t chunks_;
  EagerNorm norm_;
  Tensor hidden_ = BlockWriter::none;  // what the output layer reads
  Tensor logits_ = BlockWriter::none;
  std::vector<Tensor> saved_;            // by the loss
  Tensor gradient_ = BlockWriter::none;  // of the logits, or of the hidden state
};

}  // namespace zeroplan
