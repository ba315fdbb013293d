#pragma once
// Private to the feed-forward half of a layer: one MLP.

#include "cost_model/runtime/pytorch_layers/layer.hpp"

namespace zeroplan {

/// One MLP on one rank: `rows` tokens of `width` intermediate features.
struct MlpShape {
  std::int64_t rows;
  std::int64_t width;
  bool gated;
  enum class Kind { dense, shared, routed } kind;

  bool expert() const { return kind == Kind::routed; }
  // The names of its weights, and of what stands between its products.
  Module gate() const {
    return kind == Kind::shared ? Module::shared_gate_proj : Module::gate_proj;
  }
  Module up() const { return kind == Kind::shared ? Module::shared_up_proj : Module::up_proj; }
  Module down() const {
    return kind == Kind::shared ? Module::shared_down_proj : Module::down_proj;
  }
  Module activation() const {
    return kind == Kind::dense    ? Module::activation
           : kind == Kind::shared ? Module::shared_activation
                                  : Module::expert_activation;
  }

  Bytes wide(const EagerShape& s) const { return Bytes{s.token.element * rows * width}; }
  Bytes hidden(const EagerShape& s) const { return Bytes{s.token.element * rows * s.token.hidden}; }
};

inline MlpShape dense_mlp(const EagerShape& s) {
  return {s.tokens, s.token.mlp, s.problem.model.mlp.gated, MlpShape::Kind::dense};
}

inline MlpShape shared_mlp(const EagerShape& s) {
  const MoeSpec& moe = *s.problem.model.moe;
  return {s.tokens, ceil_div(moe.shared_intermediate_size, s.problem.layout.tp), moe.gated,
          MlpShape::Kind::shared};
}

inline MlpShape routed_mlp(const EagerShape& s) {
  const MoeSpec& moe = *s.problem.model.moe;
  return {routed_tokens(s.problem).received, ceil_div(moe.intermediate_size, s.problem.layout.etp),
          moe.gated, MlpShape::Kind::routed};
}

/// Gives the output of the second projection.
Tensor write_mlp(EagerPass& pass, const EagerShape& s, const MlpShape& shape, EagerMlp& t);

/// Gives the gradient of its input, and frees what the forward pass kept.
/// `read`: its input where nothing else reads it, which goes before the parts of its gradient are
/// added; `output`: the gradient of the result likewise, which goes with its last reader.
Tensor write_mlp_backward(BlockWriter& w,
                          const EagerShape& s,
                          const MlpShape& shape,
                          const EagerMlp& t,
                          const OnGradient& on_gradient,
                          Tensor read = BlockWriter::none,
                          Tensor output = BlockWriter::none);

std::vector<Tensor> tensors_of(const EagerMlp& mlp);

}  // namespace zeroplan
