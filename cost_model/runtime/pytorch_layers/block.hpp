#pragma once
// One block of a decoder under plain PyTorch, with what its runtime does around it.

#include "cost_model/runtime/pytorch_layers/head.hpp"

namespace zeroplan {

/// The model's code, as far as memory sees it.
struct EagerCode {
  EagerStyle style;
  LossCode loss = LossCode::plain;
  LossParts loss_parts;
};

/// The code of transformers. Keys and values of grouped attention are repeated where it runs
/// eagerly; SDPA's kernels take them as they are where there is no mask. gelu_new is a chain of
/// operators; Gemma weighs norms in fp32, Gemma 2 caps logits and scores. One product makes gate
/// and up of all experts. `autocast`: parameters are fp32, and torch.autocast narrows what products
/// read. Logits go before the backward pass, as the Trainer's loop lets them (trainer.py
/// compute_loss). Sources: huggingface/transformers v5.24.0 integrations/sdpa_attention.py
/// (use_gqa_in_sdpa), integrations/moe.py, masking_utils.py, activations.py (NewGELUActivation),
/// models/gemma2/modeling_gemma2.py, gpt_oss/modeling_gpt_oss.py,
/// deepseek_v3/modeling_deepseek_v3.py (router, shared experts), glm4_moe/modeling_glm4_moe.py.
EagerCode huggingface_code(const Problem& problem, bool autocast = false);

/// A block of the chain.
struct EagerLink {
  using Kind = BlockKind;
  Kind kind = Kind::layer;
  LayerKind layer = LayerKind::dense;
  Checkpoint checkpoint = Checkpoint::none;
  bool windowed = false;    // a layer whose queries see a window alone
  bool keeps_mask = false;  // an end of a model whose layers run twice, with its masks
};

/// The model's layer `layer`.
EagerLink layer_link(const ModelSpec& model, std::int64_t layer, Checkpoint checkpoint);

/// What a block of this code sends by itself under a recompute policy (question/runtime_code.hpp).
Block eager_block(const Problem& problem,
                  const WeightInventory& inventory,
                  const EagerCode& code,
                  BlockKind block,
                  LayerKind layer,
                  RepeatSet policy);

/// Which micro-batch of the step passes: the first makes what the later ones find.
enum class MicroBatch { first, later, last };

/// Writes one block by itself. A runtime derives from it and says what happens around the
/// computation.
class EagerBlockWriter {
 public:
  EagerBlockWriter(const Problem& problem,
                   const WeightInventory& inventory,
                   const EagerCode& code,
                   const EagerLink& link);
  virtual ~EagerBlockWriter() = default;

  Block write();

 protected:
  virtual void before_forward() {}
  virtual void after_forward() {}  // of the model's code; the loss comes after the head's
  virtual void after_loss() {}     // forward
  virtual void before_loss_backward() {}
  virtual void before_backward() {}              // of the model's code
  virtual void after_output_layer_backward() {}  // when the gradient of the logits has gone
  virtual void after_backward() {}
  /// Autograd has made the gradient of a weight; by default gone at once, as that of a part.
  virtual void on_gradient(std::string_view weight, std::int64_t elements);
  /// Autograd has made the gradient of the output layer's weight for a part of the tokens, where
  /// the layer works in such parts; by default gone at once.
  virtual void on_part_gradient(std::string_view weight, std::int64_t elements);

  /// Elements of the word embedding, or of the output layer's weight.
  std::int64_t word_elements() const;

  const Problem& p_;
  const WeightInventory& inventory_;
  const EagerCode& code_;
  const EagerLink& link_;
  LayerShape shape_;
  BlockWriter w_;

 private:
  EagerShape eager(const std::vector<Weight>& weights) const;
  EagerShape eager_end(const std::vector<Weight>& weights) const;
  Bytes mask() const;
  Bytes named_embedding() const;
  void weight_gradient(std::string_view weight, std::int64_t elements);
  void write_embedding();
  void write_layer();
  void write_head();
};

}  // namespace zeroplan
