#pragma once
// Final norm, output layer and cross entropy as plain PyTorch runs them.

#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/runtime/pytorch_layers/layer.hpp"

namespace zeroplan {

/// Which code computes the loss, and what it holds at its peak: E = tokens x vocabulary of this
/// rank, or those of one part.
enum class LossCode {
  fp32_logits,        // the model gives fp32 logits and the loop keeps them: 16 E
  plain,              // 12 E
  parallel,           // over tensor-parallel ranks: 16 E
  compiled,           // 4 E
  compiled_parallel,  // over tensor-parallel ranks, compiled: 10 E
  huggingface,        // logits kept in the output object: 14 E
};

/// Whether each tensor-parallel rank has a part of the vocabulary, to the loss's end.
constexpr bool is_parallel(LossCode code) {
  return code == LossCode::parallel || code == LossCode::compiled_parallel;
}

/// What the variable of a loop holds until a micro-batch is done: outputs = model(...).
inline constexpr Carried kept_logits{"logits", Category::activations};

/// The last block of a model: writes its events into the block of whoever runs it. Peaks by
/// LossCode, and 2 E more where the hidden state is cut; where the logits alone are cut, all
/// log-softmax results are kept: 6.5 E of 8 parts.
/// Sources: torchtitan components/loss.py at the dates of fsdp2/recipe.cpp and loss_parts.cpp;
/// torch/distributed/tensor/parallel/loss.py @02eef6b8b; transformers loss/loss_utils.py
/// @0114da07e.
class EagerHead {
 public:
  EagerHead(EagerShape shape, LossCode code, LossParts parts = {})
      : s_(std::move(shape)), code_(code), parts_(parts) {}

  /// From Block::input through the final norm to the logits.
  void forward(BlockWriter& w);
  /// The loss, after the model has returned. Gradients of the head's weight appear here where it
  /// works in chunks.
  void loss_forward(BlockWriter& w, const OnGradient& on_gradient);
  void loss_backward(BlockWriter& w);
  /// From the gradient of the logits to that of the final norm's output.
  void output_layer_backward(BlockWriter& w, const OnGradient& on_gradient);
  /// From the gradient of the final norm's output to Block::input_grad.
  void norm_backward(BlockWriter& w);
  /// Bytes of kept_logits, put by loss_forward; none with a pipeline, whose last stage frees them.
  Bytes held_logits() const;

 private:
  // What the backward pass reads of the loss of all logits or of one part.
  struct Loss {
    std::int64_t count = 0;
    Tensor logits = BlockWriter::none;  // where they are kept
    std::vector<Tensor> saved;
  };

  void write_logits(BlockWriter& w);
  LocalWeight weight() const;
  std::int64_t logits_a_token() const;
  std::int64_t logits() const { return s_.tokens * logits_a_token(); }
  std::int64_t logit_parts() const;
  Bytes narrow(std::int64_t logits) const;
  // Whether the loss works on another format than that of the logits.
  bool widens() const { return s_.token.element < 4; }
  Loss write_loss(BlockWriter& w, Tensor logits, std::int64_t count, Category kept) const;
  Tensor write_loss_backward(BlockWriter& w, const Loss& loss) const;
  // From the gradient of capped logits to that of raw ones.
  void uncap(BlockWriter& w);
  void write_part(BlockWriter& w, const OnGradient& on_gradient, std::int64_t times) const;
  void send_loss(BlockWriter& w) const;

  EagerShape s_;
  LossCode code_;
  LossParts parts_;
  EagerNorm norm_;
  Tensor hidden_ = BlockWriter::none;   // what the output layer reads
  Tensor tangent_ = BlockWriter::none;  // of the logits, where they are capped
  Tensor logits_ = BlockWriter::none;
  std::vector<Loss> losses_;
  Tensor gradient_ = BlockWriter::none;  // of the logits, or of the hidden state
};

}  // namespace zeroplan
