// What does the attention half of a Megatron layer allocate where it is linear? Front door:
// write_linear_attention_forward.
//
// Sources: Megatron-LM @d98e8a64dd core/ssm/gated_delta_net/{common,gdn}.py, as in release 0.19;
// flash-linear-attention 0.5.1 fla/modules/{l2norm.py,conv/triton/ops.py}. What a compiled function
// keeps is what PyTorch 2.15's partitioner chooses of it (validator/pytorch/kept_by_compiler.py).
#include "cost_model/kernel/delta_rule.hpp"
#include "cost_model/runtime/delta_chunks.hpp"
#include "cost_model/runtime/megatron/head_exchange.hpp"
#include "cost_model/runtime/megatron/layer.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32_bytes = 4;

// Sizes on one rank, which has its heads of all tokens while the rule runs.
struct RuleSizes {
  const MegatronShape& s;
  const LinearAttentionSpec heads = local_linear_attention(s.problem);
  const std::int64_t tokens = s.tokens * s.problem.layout.cp;
  const DeltaChunks chunks =
      delta_chunks(repeated(heads), s.token.element, tokens, s.problem.layout.micro_batch);

  // Keys are repeated before the kernels: each value head has its own.
  static LinearAttentionSpec repeated(LinearAttentionSpec a) {
    a.key_heads = a.value_heads;
    return a;
  }
  Bytes each(std::int64_t width) const { return Bytes{s.token.element * width * tokens}; }
  Bytes keys() const { return each(2 * heads.keys()); }  // queries too
  Bytes mixed() const { return each(heads.mixed()); }
  Bytes projected() const { return each(heads.mixed() + heads.values() + 2 * heads.value_heads); }
  Bytes key_statistics() const { return Bytes{fp32_bytes * 2 * heads.key_heads * tokens}; }
  std::int64_t filters() const { return heads.mixed() * heads.convolution; }
  /// Of the filters' gradient, in fp32 and a part for each chunk of tokens.
  Bytes filter_gradients() const {
    return Bytes{fp32_bytes * filters() * ceil_div(tokens, delta_rule_chunk)};
  }
  bool exchanges() const { return s.problem.layout.cp > 1; }
  bool turns_samples() const { return s.problem.layout.micro_batch > 1; }
};

// Queries, keys, values, gate and both rates, of all tokens.
void write_projection(BlockWriter& w, const RuleSizes& z, DeltaRuleTensors& t) {
  const MegatronShape& s = z.s;
  const std::string_view name = "queries, keys, values, gate and rates";
  const Tensor gathered = write_column_linear_input(w, s, s.token.hidden);
  if (!z.exchanges()) {
    t.projected = w.save(name, z.projected());
    w.run(Module::in_proj);
    return w.free(gathered);
  }
  const Tensor own = w.temporary("projected here", z.projected());
  w.run(Module::in_proj);
  w.free(gathered);
  const Tensor by_head = w.temporary("projected, by head", z.projected());
  const Tensor received =
      exchanged(w, w.temporary("projected, by rank", z.projected()), z.projected());
  t.projected = w.save(name, z.projected());
  w.free({received, by_head, own});
  t.convolution = w.save("filters of this rank", Bytes{s.token.element * z.filters()});
}

// From what was projected to what the rule gives. `named`: what variables hold until the half
// returns.
void write_rule(BlockWriter& w, const RuleSizes& z, DeltaRuleTensors& t, TensorList& named) {
  named.push_back(w.temporary("convolved", z.mixed()));
  w.run({Module::convolution, Module::delta_rule});
  const Tensor row = w.temporary("queries and keys in a row", z.keys());
  t.heads.push_back(w.save("normalised queries and keys", z.keys()));
  t.heads.push_back(w.save("norm statistics of heads", z.key_statistics()));
  w.free(row);
  t.kernel.push_back(w.save("queries of value heads", z.chunks.expanded_keys));
  t.kernel.push_back(w.save("keys of value heads", z.chunks.expanded_keys));
  t.kernel.push_back(w.save("values", z.chunks.values));
  named.push_back(w.temporary("decay in logarithms", z.chunks.wide_rates));
  t.gate = w.save("gate", z.chunks.values);
  t.kernel.push_back(w.save("writing rate", z.chunks.rates));
  t.kernel.push_back(w.save("decay summed by chunk", z.chunks.wide_rates));
  t.kernel.push_back(w.save("inverses of chunks", z.chunks.inverses));
  t.output = write_delta_chunks(w, z.chunks, Category::activations);
}

// The norm of each head's output, times the gate's SiLU, in the order in which the last projection
// reads it, which is given.
Tensor write_gated_norm(BlockWriter& w,
                        const RuleSizes& z,
                        DeltaRuleTensors& t,
                        Category category) {
  w.run(Module::gated_output);
  t.normed = w.save("normed output of the rule", z.chunks.values);
  t.norm_statistics = w.save("norm statistics of the output", z.chunks.wide_rates);
  const auto make = [&](std::string_view name) { return w.temporary(name, z.chunks.values); };
  const auto last = [&] { return w.allocate("gated output", z.chunks.values, category); };
  if (!z.exchanges() && !z.turns_samples()) return last();
  Tensor gated = make("gated output by sample");
  if (z.turns_samples()) {
    const Tensor turned = z.exchanges() ? make("gated output, turned") : last();
    w.free(gated);
    if (!z.exchanges()) return turned;
    gated = turned;
  }
  const Tensor received = exchanged(w, make("gated output, by rank"), z.chunks.values);
  const Tensor output = last();
  w.free({received, gated});
  return output;
}

// The gradient of the gated output, in the order in which the gate gave it.
Tensor write_order_backward(BlockWriter& w, const RuleSizes& z, Tensor output) {
  const Bytes bytes = z.chunks.values;
  if (z.exchanges()) {
    output = exchanged(w, copied(w, "output gradient, by rank", output, bytes), bytes);
    output = copied(w, "output gradient of all tokens", output, bytes);
  }
  return z.turns_samples() ? copied(w, "output gradient by sample", output, bytes) : output;
}

// The gradient of all that was projected, on the rank that projected it.
Tensor write_exchange_backward(BlockWriter& w, const RuleSizes& z, Tensor all) {
  if (!z.exchanges()) return all;
  const Bytes bytes = z.projected();
  all = exchanged(w, copied(w, "projected gradient, by rank", all, bytes), bytes);
  all = copied(w, "projected gradient by head", all, bytes);
  const Tensor zeros = w.temporary("zeros", bytes);
  const Tensor sum = w.temporary("projected gradient", bytes);
  w.free({zeros, all});
  return sum;
}

}  // namespace

AttentionTensors write_linear_attention_forward(BlockWriter& w, const MegatronShape& s) {
  const RuleSizes z{s};
  AttentionTensors t{.norm = write_norm(w, s, Module::input_norm, s.linear_input(s.residual()))};
  TensorList named;
  write_projection(w, z, t.delta_rule);
  write_rule(w, z, t.delta_rule, named);
  const bool quantized = is_quantized(s.problem.training.precision);
  const bool again = s.drops(RecomputeModule::gdn_norm_out);
  const Tensor gated = write_gated_norm(
      w, z, t.delta_rule, quantized || again ? Category::temporaries : Category::activations);
  t.projection_input = quantized ? w.save("projection input", s.linear_input(z.chunks.values))
                       : again   ? BlockWriter::none
                                 : gated;
  if (again) w.free({t.delta_rule.normed, t.delta_rule.norm_statistics});
  t.result = write_row_linear_forward(w, s, Module::proj, "projection output");
  if (quantized || again) w.free(gated);
  w.free(named);
  t.dropout_mask = w.save("hidden dropout mask", s.dropout_mask());
  return t;
}

Tensor write_linear_attention_backward(BlockWriter& w,
                                       const MegatronShape& s,
                                       const AttentionTensors& t) {
  const RuleSizes z{s};
  DeltaRuleTensors own = t.delta_rule;
  // The last projection's weight gradient reads what is made again.
  Tensor again = BlockWriter::none;
  if (s.drops(RecomputeModule::gdn_norm_out)) {
    again = write_gated_norm(w, z, own, Category::temporaries);
  }
  const std::int64_t values = z.heads.values() * s.problem.layout.cp;
  Tensor output = write_row_linear_backward(w, s, Module::proj, "gated output gradient", values);
  w.free(t.dropout_mask);
  w.free_with_weights(t.projection_input);
  output = write_order_backward(w, z, output);
  const Tensor of_normed = w.temporary("gradient of the normed output", z.chunks.values);
  const Tensor of_gate = w.temporary("gate gradient", z.chunks.values);
  w.run_backward(Module::gated_output);
  w.free(own.normed);
  // Made again, all that the norm and the gate read stays until both have passed the gradient on
  // (Megatron-LM core/tensor_parallel/random.py CheckpointWithoutOutputFunction).
  if (again == BlockWriter::none) w.free({own.gate, output});
  const Tensor of_rule = w.temporary("gradient of the rule's output", z.chunks.values);
  w.free({own.norm_statistics, of_normed});
  if (again != BlockWriter::none) w.free({again, output, own.gate});
  w.free(own.output);

  w.run_backward(Module::delta_rule);
  const DeltaChunkGradients g = write_delta_chunks_backward(w, z.chunks);
  w.free(of_rule);
  w.free(own.kernel);
  const Tensor of_convolved = w.temporary("gradient of what was convolved", z.mixed());
  const Tensor rates = w.temporary("gradients of the projected rates", 2 * z.chunks.rates);
  w.free(own.heads);
  w.free({g.rates, g.value, g.key, g.query});

  w.run_backward(Module::convolution);
  const Tensor before_silu = w.temporary("gradient before SiLU", z.mixed());
  const Tensor mixed = w.temporary("gradient of queries, keys and values", z.mixed());
  w.free(w.temporary("filter gradients by chunk", z.filter_gradients()));
  w.free({before_silu, of_convolved, own.projected, own.convolution});
  Tensor all = w.temporary("gradient of all that was projected", z.projected());
  w.free({mixed, of_gate, rates});
  all = write_exchange_backward(w, z, all);
  const std::int64_t outputs = z.projected().count() / (s.token.element * s.tokens);
  const Tensor norm =
      write_column_linear_backward(w, s, Module::in_proj, t.norm.output, s.token.hidden, outputs);
  free_with_weights(w, s, all);
  return norm;
}

}  // namespace zeroplan
