// What does linear attention allocate? Front door: write_linear_attention.
// Sources: transformers v5.24.0 models/qwen3_next/modeling_qwen3_next.py Qwen3NextGatedDeltaNet and
// Qwen3NextRMSNormGated, models/qwen3_5/modeling_qwen3_5.py; the kernels of the packages
// flash-linear-attention 0.6.0 (fla/ops/gated_delta_rule/chunk.py) and causal-conv1d 1.7.0.
#include "cost_model/runtime/pytorch_layers/linear_attention.hpp"

#include <utility>

#include "cost_model/runtime/delta_chunks.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t bytes_in_fp32 = 4;

// Sizes of one rank's tokens.
struct DeltaSizes {
  const EagerShape& s;
  const LinearAttentionSpec& a = *s.problem.model.linear_attention;
  const DeltaChunks chunks =
      delta_chunks(a, s.token.element, s.tokens, s.problem.layout.micro_batch);

  Bytes keys() const { return s.features(a.keys()); }
  Bytes values() const { return s.features(a.values()); }
  Bytes mixed() const { return s.features(a.mixed()); }
  Bytes rates() const { return s.features(a.value_heads); }
  Bytes wide_rates() const { return Bytes{bytes_in_fp32 * a.value_heads * s.tokens}; }
  Bytes wide_values() const { return Bytes{bytes_in_fp32 * a.values() * s.tokens}; }
  /// What the gate is multiplied with: under autocast a weight of fp32 widens it.
  Bytes weighed() const { return s.style.autocast ? wide_values() : values(); }
  Bytes key_statistics() const { return Bytes{bytes_in_fp32 * a.key_heads * s.tokens}; }
};

// Queries, keys and values before their convolution, and the gate; where one projection makes them,
// head by head, each is copied out of it. `named`: what variables hold until the half returns.
void write_projections(EagerPass& pass,
                       const DeltaSizes& z,
                       EagerDeltaRule& t,
                       std::vector<Tensor>& named) {
  if (!z.a.joined_projections) {
    t.mixed = pass.multiply({Module::in_proj_qkv}, "queries, keys and values", z.mixed());
    const Tensor gate = pass.multiply({Module::in_proj_z}, "gate", z.values());
    named.push_back(pass.multiply({Module::in_proj_b}, "writing rate", z.rates()));
    named.push_back(pass.multiply({Module::in_proj_a}, "decay", z.rates()));
    pass.writer().run(Module::convolution);
    named.push_back(gate);
    named.push_back(pass.writer().temporary("convolved", z.mixed()));
    return;
  }
  BlockWriter& w = pass.writer();
  named.push_back(pass.multiply({Module::in_proj_qkvz}, "queries, keys, values and gate",
                                z.mixed() + z.values()));
  named.push_back(pass.multiply({Module::in_proj_ba}, "writing rate and decay", 2 * z.rates()));
  w.run(Module::convolution);
  const Tensor value = w.temporary("values", z.values());
  const Tensor gate = w.temporary("gate", z.values());
  named.push_back(w.temporary("writing rate and decay, apart", 2 * z.rates()));
  const Tensor query = w.temporary("queries", z.keys());
  const Tensor key = w.temporary("keys", z.keys());
  t.mixed = pass.make("queries, keys and values", z.mixed());
  named.push_back(gate);
  named.push_back(w.temporary("convolved", z.mixed()));
  w.free({query, key, value});
}

// The writing rate's sigmoid, and the decay, by softplus in fp32.
void write_rates(EagerPass& pass,
                 const DeltaSizes& z,
                 EagerDeltaRule& t,
                 std::vector<Tensor>& named) {
  BlockWriter& w = pass.writer();
  t.saved.push_back(pass.make("sigmoid of the writing rate", z.rates()));
  const Tensor wide = w.temporary("decay in fp32", z.wide_rates());
  t.saved.push_back(pass.make("shifted decay", z.wide_rates()));
  w.free(wide);
  t.saved.push_back(pass.make("softplus of the decay", z.wide_rates()));
  named.push_back(w.temporary("decay in logarithms", z.wide_rates()));
}

// Gives what the kernels give.
Tensor write_chunks(EagerPass& pass, const DeltaSizes& z, EagerDeltaRule& t) {
  BlockWriter& w = pass.writer();
  const Tensor query = w.temporary("queries in a row", z.keys());
  const Tensor key = w.temporary("keys in a row", z.keys());
  t.saved.push_back(pass.make("values in a row", z.values()));
  for (const char* name : {"normalised queries", "normalised keys"}) {
    t.saved.push_back(pass.make(name, z.keys()));
    t.saved.push_back(pass.make("norm statistics", z.key_statistics()));
  }
  t.saved.push_back(pass.make("decay summed by chunk", z.wide_rates()));
  t.saved.push_back(pass.make("inverses of chunks", z.chunks.inverses));
  const Tensor output = write_delta_chunks(w, z.chunks, Category::temporaries);
  w.free({query, key});
  return output;
}

// Of each head's output, in fp32, times its weight, times the gate's SiLU in fp32.
void write_gated_norm(EagerPass& pass, const DeltaSizes& z, EagerDeltaRule& t) {
  BlockWriter& w = pass.writer();
  t.widened = pass.make("norm input in fp32", z.wide_values());
  w.free(w.temporary("squared norm input", z.wide_values()));
  const Tensor variance = w.temporary("variance", z.wide_rates());
  t.statistics = pass.make("norm statistics", z.wide_rates());
  const Tensor scaled = w.temporary("normalised in fp32", z.wide_values());
  pass.done(t.widened);
  t.normalised = pass.make("normalised", z.values());
  t.weighed = pass.make("normalised and weighed", z.weighed());
  pass.done(t.normalised);
  w.free(scaled);
  t.gate = pass.make("gate in fp32", z.wide_values());
  t.activated = pass.make("SiLU of the gate", z.wide_values());
  pass.done(t.gate);
  const Tensor product = w.temporary("gated in fp32", z.wide_values());
  for (Tensor* tensor : {&t.activated, &t.weighed}) pass.done(*tensor);
  t.gated = pass.make("gated output", z.values());
  w.free({product, variance});
  pass.done(t.statistics);
}

// Frees all that the norm saved, and gives the gradients of its input and of the gate.
std::pair<Tensor, Tensor> write_gated_norm_backward(BlockWriter& w,
                                                    const DeltaSizes& z,
                                                    const EagerDeltaRule& t,
                                                    Tensor output) {
  const Bytes wide = z.wide_values();
  const auto in_fp32 = [&](std::string_view name) { return w.temporary(name, wide); };
  const Tensor widened = in_fp32("output gradient in fp32");
  w.free(output);
  const Tensor of_weighed = in_fp32("gradient by the gate");
  const Tensor of_activated = in_fp32("gradient of the SiLU");
  const Tensor narrow = w.temporary("gradient of what was weighed", z.weighed());
  w.free({of_activated, widened, t.activated, t.weighed});
  const Tensor of_gate = in_fp32("gate gradient in fp32");
  w.free({of_weighed, t.gate});
  const Tensor gate = w.temporary("gate gradient", z.values());
  w.free(of_gate);
  const Tensor by_row = w.temporary("norm weight gradient by row", z.weighed());
  const Tensor scaled = w.temporary("normalised gradient", z.weighed());
  w.free({by_row, narrow, t.normalised});
  const Tensor scaled_wide = in_fp32("normalised gradient in fp32");
  w.free(scaled);
  const Tensor direct = in_fp32("fp32 input gradient");
  w.free(in_fp32("statistics gradient by row"));
  w.free(scaled_wide);
  w.free(t.statistics);
  const Tensor mean = in_fp32("mean gradient");
  const Tensor power = in_fp32("norm input in fp32, once more");
  const Tensor doubled = in_fp32("doubled norm input");
  const Tensor squared = in_fp32("squared input gradient");
  w.free({doubled, power, mean, t.widened});
  const Tensor sum = in_fp32("fp32 input gradient, summed");
  w.free({direct, squared});
  const Tensor input = w.temporary("norm input gradient", z.values());
  w.free(sum);
  return {input, gate};
}

// Gradients of queries, keys and values in a row, through the norms of the kernels too, and of both
// rates.
DeltaChunkGradients write_rule_backward(BlockWriter& w,
                                        const DeltaSizes& z,
                                        const EagerDeltaRule& t,
                                        Tensor output) {
  DeltaChunkGradients g = write_delta_chunks_backward(w, z.chunks);
  const Tensor query = w.temporary("query gradient", z.keys());
  w.free(g.query);
  const Tensor key = w.temporary("key gradient", z.keys());
  w.free({g.key, output});
  for (const Tensor tensor : t.saved) w.free(tensor);
  g.query = query;
  g.key = key;
  return g;
}

}  // namespace

std::vector<Tensor> tensors_of(const EagerDeltaRule& t) {
  std::vector<Tensor> list{t.mixed,   t.widened,   t.statistics, t.normalised,
                           t.weighed, t.activated, t.gate,       t.gated};
  list.insert(list.end(), t.saved.begin(), t.saved.end());
  return list;
}

void write_linear_attention(EagerPass& pass, const EagerShape& s, EagerAttention& t) {
  const DeltaSizes z{s};
  EagerDeltaRule& own = t.delta_rule;
  std::vector<Tensor> named;
  write_projections(pass, z, own, named);
  pass.writer().run(Module::delta_rule);
  write_rates(pass, z, own, named);
  pass.done(own.mixed);
  const Tensor output = write_chunks(pass, z, own);
  pass.done(own.saved);
  pass.writer().run(Module::gated_output);
  write_gated_norm(pass, z, own);
  pass.writer().free(output);
  t.result = pass.multiply({Module::o_proj}, "projection output", s.features(s.token.hidden));
  pass.done(own.gated);
  pass.drop(named);
  pass.done(t.input);
}

Tensor write_linear_attention_backward(BlockWriter& w,
                                       const EagerShape& s,
                                       const EagerAttention& t,
                                       const OnGradient& on_gradient) {
  const DeltaSizes z{s};
  const EagerDeltaRule& own = t.delta_rule;
  write_linear_gradients(w, s, Module::o_proj, on_gradient);
  const Tensor output = w.temporary("gated output gradient", z.values());
  w.free(own.gated);
  w.run_backward(Module::gated_output);
  const auto [normed, gate] = write_gated_norm_backward(w, z, own, output);
  w.run_backward(Module::delta_rule);
  const DeltaChunkGradients g = write_rule_backward(w, z, own, normed);
  w.run_backward(Module::convolution);
  const Tensor convolved = w.temporary("gradient of what was convolved", z.mixed());
  w.free({g.query, g.key, g.value});
  const Tensor mixed = w.temporary("gradient of queries, keys and values", z.mixed());
  on_gradient(w, "conv1d", s.elements("conv1d"));
  w.free({convolved, own.mixed});

  InputGradient input(w, s, s.features(s.token.hidden));
  const auto project = [&](Module linear, std::initializer_list<Tensor> done_with) {
    write_linear_gradients(w, s, linear, on_gradient);
    const Tensor part = input.make();
    for (const Tensor tensor : done_with) w.free_with_weights(tensor);
    input.add(part);
  };
  if (z.a.joined_projections) {
    const Tensor all = w.temporary("gradient of all four", z.mixed() + z.values());
    w.free({mixed, gate});
    project(Module::in_proj_ba, {g.rates});
    project(Module::in_proj_qkvz, {all, t.input});
  } else {
    project(Module::in_proj_a, {g.rates});
    project(Module::in_proj_b, {});
    project(Module::in_proj_z, {gate});
    project(Module::in_proj_qkv, {mixed, t.input});
  }
  return input.sum();
}

}  // namespace zeroplan
