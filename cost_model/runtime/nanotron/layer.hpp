#pragma once
// A transformer layer as nanotron runs it.
// Sources: huggingface/nanotron @67c5ebb6 src/nanotron/models/llama.py,
// parallel/tensor_parallel/functional.py; flash-attention @0a721dae ops/triton/layer_norm.py.

#include "cost_model/kernel/layer_modules.hpp"
#include "cost_model/program/block.hpp"
#include "cost_model/program/layer_shape.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// A 16-bit gradient, which stays beside its fp32 accumulation until the micro-batch is done.
inline constexpr Carried nanotron_gradient{"gradient", Category::gradients};

/// One layer, written into the block of its rank. With tensor parallelism the row-parallel linears
/// scatter their sums over the tokens.
class NanotronLayer {
 public:
  NanotronLayer(const LayerShape& shape, const std::vector<Weight>& weights)
      : s_(shape), modules_(layer_modules(shape.problem, LayerKind::dense)), weights_(weights) {}

  void forward(BlockWriter& w);
  void backward(BlockWriter& w);

 private:
  struct Tensors {
    Tensor first_statistics, first_norm, projected, queries, keys_values, output, log_sum_exp,
        transposed, middle, second_statistics, second_norm, gate_up, activated, product;
  };
  /// What a call makes besides: locals that live as long as it does.
  struct Locals {
    Tensor attention_result, result;
  };

  Locals write(BlockWriter& w);
  void free_saved(BlockWriter& w) const;
  Bytes gradient_of(std::string_view module) const;
  bool recomputed() const { return s_.problem.layout.recompute == Recompute::full; }

  LayerShape s_;
  LayerModules modules_;
  const std::vector<Weight>& weights_;
  Tensors t_{};
};

}  // namespace zeroplan
