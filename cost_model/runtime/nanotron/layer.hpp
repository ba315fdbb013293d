#pragma once
// A transformer layer as nanotron runs it.
// Sources: huggingface/nanotron @67c5ebb6 src/nanotron/models/llama.py, @2411b022 models/qwen.py,
// parallel/tensor_parallel/functional.py; flash-attention @0a721dae ops/triton/layer_norm.py,
// v2.6.3 csrc/flash_attn/flash_api.cpp.

#include "cost_model/kernel/layer_modules.hpp"
#include "cost_model/runtime/pytorch_layers/layer.hpp"

namespace zeroplan {

/// A 16-bit gradient, which stays beside its fp32 accumulation until the micro-batch is done.
inline constexpr Carried nanotron_gradient{"gradient", Category::gradients};

/// What a log-sum-exp that waits to be logged keeps of a repeated layer's graph, which it is part
/// of: the input, a leaf of that graph, and the input's gradient.
inline constexpr Carried nanotron_logged_graph{"input and gradient that a log keeps",
                                               Category::activations};
/// Whether log-sum-exps stay until the step ends, to be logged (logging/logmixin.py).
bool logs_attention(const Problem& problem);

/// Whether the layer is that of Qwen2Config, which nanotron trains alone since 2025-06: queries,
/// keys and values stay views of one projection's output, and the norm before it is written out in
/// fp32.
bool runs_qwen_class(const Problem& problem);

/// One layer, written into the block of its rank. With tensor parallelism the row-parallel linears
/// scatter their sums over the tokens.
class NanotronLayer {
 public:
  NanotronLayer(const LayerShape& shape, const std::vector<Weight>& weights);

  void forward(BlockWriter& w);
  void backward(BlockWriter& w);

 private:
  struct Tensors {
    EagerNorm first;  // written out
    Tensor first_statistics = BlockWriter::none;
    Tensor first_norm, mlp_input;  // what the two column-parallel linears keep
    Tensor projected, queries, keys_values, output, log_sum_exp, middle, second_statistics, gate_up,
        activated, product;
  };
  /// What a call makes besides: locals that live as long as it does.
  struct Locals {
    Tensor attention_result, result;
  };

  Locals write(BlockWriter& w);
  void write_first_norm(BlockWriter& w);
  Tensor write_transposed(BlockWriter& w) const;
  Tensor write_attention(BlockWriter& w);
  void write_feed_forward_backward(BlockWriter& w);
  Tensor write_mixed_gradient(BlockWriter& w, Tensor kernel) const;
  void write_attention_backward(BlockWriter& w);
  void free_saved(BlockWriter& w) const;
  Bytes gradient_of(std::string_view module) const;
  bool grouped() const { return s_.token.key_value < s_.token.query; }
  bool recomputed() const { return s_.problem.layout.recompute == Recompute::full; }
  // A norm written out keeps its input in fp32 instead.
  bool reads_input() const { return !packs_ || recomputed(); }
  void keep_for_log(BlockWriter& w) const;

  bool packs_;
  EagerShape s_;
  LayerModules modules_;
  const std::vector<Weight>& weights_;
  Tensors t_{};
};

}  // namespace zeroplan
