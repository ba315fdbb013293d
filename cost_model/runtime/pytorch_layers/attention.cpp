// What does the attention half of a layer allocate? Front door: write_eager_attention.
#include <tuple>
#include <utility>

#include "cost_model/runtime/pytorch_layers/kernel.hpp"
#include "cost_model/runtime/pytorch_layers/linear_attention.hpp"
#include "cost_model/runtime/pytorch_layers/state_space.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;

bool gates_output(const EagerShape& s) {
  return s.problem.model.attention.output_gate;
}

bool norms_heads(const EagerShape& s) {
  return s.problem.model.attention.qk_norm && !latent(s);
}

// Linears that read the norm's output; the MLP's first one too where it has no norm of its own.
std::int64_t projections(const EagerShape& s, LayerKind kind) {
  const auto of_attention = [&] { return latent(s) ? 2 : s.style.fused_qkv ? 1 : 3; };
  const std::int64_t own = !is_linear(kind)              ? of_attention()
                           : s.problem.model.state_space ? 1
                                                         : linear_projections(s);
  return own + (s.norms().shared() ? 1 : 0);
}

void write_head_norms(EagerPass& pass, const EagerShape& s, EagerKernel& p, EagerAttention& t) {
  const AttentionSpec& a = s.problem.model.attention;
  const auto statistics = [&](std::int64_t heads) {
    return Bytes{fp32 * (a.joint_qk_norm ? 1 : heads) * s.tokens};
  };
  t.query_norm = write_eager_norm(pass, s, query(s), statistics(s.token.heads));
  t.key_norm = write_eager_norm(pass, s, keys(s), statistics(s.token.key_value / a.head_dim));
  pass.writer().run(Module::query_key_norm);
  t.raw = {p.query, p.key};
  p.query = std::exchange(t.query_norm.output, BlockWriter::none);
  p.key = std::exchange(t.key_norm.output, BlockWriter::none);
  if (widens_norm_input(s)) {
    pass.drop(t.raw);
    t.raw.clear();
  }
}

// Of turned queries and keys (transformers v5.24.0 models/llama4/modeling_llama4.py
// Llama4TextL2Norm).
void write_plain_norms(EagerPass& pass, const EagerShape& s, EagerKernel& p, EagerAttention& t) {
  const std::int64_t kv_heads = s.token.key_value / s.problem.model.attention.head_dim;
  pass.writer().run(Module::query_key_norm);
  const auto write = [&](Tensor& turned, Bytes bytes, std::int64_t heads) {
    EagerNorm norm = write_plain_norm(pass, s, bytes, Bytes{fp32 * heads * s.tokens});
    pass.done(norm.statistics);
    pass.drop(std::exchange(turned, std::exchange(norm.normalised, BlockWriter::none)));
    return norm;
  };
  t.query_norm = write(p.query, query(s), s.token.heads);
  t.key_norm = write(p.key, keys(s), kv_heads);
}

EagerKernel write_grouped_projections(EagerPass& pass, const EagerShape& s) {
  EagerKernel p;
  if (s.style.fused_qkv) {
    p.mixed = pass.multiply({Module::q_proj, Module::k_proj, Module::v_proj}, "mixed qkv",
                            query(s) + keys(s) + values(s));
    if (s.style.compiled || s.style.views_qkv) return p;
    // Each is made contiguous (torchtitan models/common/attention.py @b5bcd76c6, FusedQKVLinear).
    p.query = pass.make("queries", query(s));
    p.key = pass.make("keys", keys(s));
    p.value = pass.make("values", values(s));
    pass.drop(std::exchange(p.mixed, BlockWriter::none));
    return p;
  }
  p.query = pass.multiply({Module::q_proj}, "queries", (gates_output(s) ? 2 : 1) * query(s));
  p.key = pass.multiply({Module::k_proj}, "keys", keys(s));
  p.value = pass.multiply({Module::v_proj}, "values", values(s));
  return p;
}

// `passing`: what the code refers to until its end, and nothing saves.
EagerKernel write_latent_projections(EagerPass& pass,
                                     const EagerShape& s,
                                     EagerAttention& t,
                                     std::vector<Tensor>& passing) {
  const MlaSpec& mla = *s.problem.model.attention.mla;
  const bool widens = widens_norm_input(s);
  EagerKernel p;
  const auto write_latent = [&](Module linear, std::string_view name, std::int64_t width,
                                std::int64_t rank) {
    (widens ? passing : t.latents).push_back(pass.multiply({linear}, name, s.features(width)));
    const EagerNorm norm = write_eager_norm(pass, s, s.features(rank), Bytes{fp32 * s.tokens});
    for (const Tensor tensor : tensors_of(norm)) t.latents.push_back(tensor);
  };
  const bool low_rank = mla.q_lora_rank > 0;
  if (low_rank) write_latent(Module::q_a_proj, "query latent", mla.q_lora_rank, mla.q_lora_rank);
  pass.drop(std::exchange(passing, {}));  // that of queries has no name
  const Tensor up =
      pass.multiply({low_rank ? Module::q_b_proj : Module::q_proj}, "queries", query(s));
  write_latent(Module::kv_a_proj, "key-value latent with rotary part",
               mla.kv_lora_rank + mla.qk_rope_head_dim, mla.kv_lora_rank);
  pass.writer().run(Module::latent_norm);
  const Tensor mixed =
      pass.multiply({Module::kv_b_proj}, "up-projected keys and values",
                    s.features(s.token.heads * mla.qk_nope_head_dim + s.token.output));
  // The rotary parts are turned apart and joined to the rest: new tensors. Values are a view of
  // what they were split from (torchtitan models/deepseek_v3/model/model.py; transformers
  // modeling_deepseek_v3.py), which only a compiler copies.
  p.query = pass.make("joined queries", query(s));
  p.key = pass.make("joined keys", keys(s));
  p.value = s.style.compiled ? pass.make("values", values(s)) : mixed;
  pass.drop(up);
  if (s.style.compiled) pass.drop(mixed);
  return p;
}

// The kernel's output times the sigmoid of the gate, both of which are kept.
void write_gate(EagerPass& pass, const EagerShape& s, EagerAttention& t) {
  t.sigmoid = pass.make("sigmoid of the gate", query(s));
  t.gated = pass.make("gated attention output", query(s));
  pass.done(t.sigmoid);
}

// Frees the gradient of what was gated; gives those of the kernel's output and of the gate.
std::pair<Tensor, Tensor> write_gate_backward(BlockWriter& w,
                                              const EagerShape& s,
                                              const EagerAttention& t,
                                              Tensor gated) {
  w.free(t.gated);
  const Tensor output = w.temporary("attention output gradient", query(s));
  const Tensor sigmoid = w.temporary("sigmoid gradient", query(s));
  w.free(gated);
  const Tensor gate = w.temporary("gate gradient", query(s));
  w.free({sigmoid, t.sigmoid});
  return {output, gate};
}

}  // namespace

EagerAttention write_eager_attention(EagerPass& pass, const EagerShape& s, LayerKind kind) {
  BlockWriter& w = pass.writer();
  EagerAttention t;
  if (s.norms().input) {
    w.run(Module::input_norm);
    t.norm = write_stream_norm(pass, s);
  }
  t.input = write_linear_input(pass, s, t.norm, projections(s, kind));
  if (is_linear(kind)) {
    s.problem.model.state_space ? write_state_space(pass, s, t)
                                : write_linear_attention(pass, s, t);
    drop_argument(pass, t.norm);
    return t;
  }
  EagerKernel& p = t.kernel;
  std::vector<Tensor> passing;
  p = latent(s) ? write_latent_projections(pass, s, t, passing)
                : write_grouped_projections(pass, s);
  w.run(Module::qkv_split);
  if (gates_output(s)) passing.push_back(w.temporary("gate", query(s)));
  if (norms_heads(s)) write_head_norms(pass, s, p, t);
  if (rotary(s)) w.run(Module::rotary);
  if (rotary(s) && !latent(s)) write_rotation(pass, s, p);
  if (s.style.norms_turned) write_plain_norms(pass, s, p, t);
  if (s.style.compiled) pass.done(t.input);  // its last reader has run
  write_kernel(pass, s, p);
  if (gates_output(s)) write_gate(pass, s, t);
  const Tensor projected =
      pass.multiply({Module::o_proj}, "projection output", s.features(s.token.hidden));
  pass.drop(passing);
  for (std::vector<Tensor>* list : {&t.latents, &t.raw}) pass.done(*list);
  if (pass.is_checkpoint()) {
    pass.drop(tensors_of(p));
    p = {};
  }
  pass.done(t.gated);
  pass.done(t.input);
  t.result = write_row_reduction(pass, s, projected, true);
  drop_argument(pass, t.norm);
  return t;
}

Tensor write_eager_attention_backward(BlockWriter& w,
                                      const EagerShape& s,
                                      LayerKind kind,
                                      const EagerAttention& t,
                                      const OnGradient& on_gradient) {
  if (is_linear(kind)) {
    return s.problem.model.state_space ? write_state_space_backward(w, s, t, on_gradient)
                                       : write_linear_attention_backward(w, s, t, on_gradient);
  }
  const Tensor whole = write_gathered_gradient(w, s, "gathered output gradient");
  write_linear_gradients(w, s, Module::o_proj, on_gradient);
  Tensor output = w.temporary("attention output gradient", s.features(s.token.output));
  w.free_with_weights(whole);
  Tensor gate = BlockWriter::none;  // its gradient
  if (gates_output(s)) std::tie(output, gate) = write_gate_backward(w, s, t, output);
  EagerKernel kernel = t.kernel;
  const Tensor table = std::exchange(kernel.rotary, BlockWriter::none);
  auto [query_gradient, key_gradient, value_gradient] = write_kernel_backward(w, s, kernel, output);
  w.run_backward(Module::core_attention);
  const auto through_norms = [&] {
    w.run_backward(Module::query_key_norm);
    query_gradient = write_eager_norm_backward(w, t.query_norm, query(s), query_gradient);
    key_gradient = write_eager_norm_backward(w, t.key_norm, keys(s), key_gradient);
  };
  if (s.style.norms_turned) through_norms();
  if (rotary(s)) w.run_backward(Module::rotary);
  if (rotary(s) && !latent(s)) write_rotation_backward(w, s, table, query_gradient, key_gradient);
  if (norms_heads(s)) {
    through_norms();
    for (const Tensor tensor : t.raw) w.free(tensor);
  }

  w.run_backward(Module::qkv_split);
  InputGradient input(w, s, s.features(s.token.hidden));
  const auto project = [&](Tensor gradient, Module linear, Tensor done_with = BlockWriter::none) {
    write_linear_gradients(w, s, linear, on_gradient);
    const Tensor part = input.make();
    w.free_with_weights(gradient);
    w.free(done_with);
    input.add(part);
  };
  if (latent(s)) {
    // Through the up-projections to the latents, which are narrow.
    write_linear_gradients(w, s, Module::kv_b_proj, on_gradient);
    w.run_backward(Module::latent_norm);
    w.free_with_weights(key_gradient);
    w.free_with_weights(value_gradient);
    project(BlockWriter::none, Module::kv_a_proj);
    const bool low_rank = s.problem.model.attention.mla->q_lora_rank > 0;
    if (low_rank) write_linear_gradients(w, s, Module::q_b_proj, on_gradient);
    project(query_gradient, low_rank ? Module::q_a_proj : Module::q_proj, t.input);
    for (const Tensor tensor : t.latents) w.free(tensor);
  } else if (s.style.fused_qkv) {
    const Tensor mixed = w.temporary("mixed qkv gradient", query(s) + keys(s) + values(s));
    for (const Tensor tensor : {query_gradient, key_gradient, value_gradient}) w.free(tensor);
    write_linear_gradients(w, s, Module::k_proj, on_gradient);
    write_linear_gradients(w, s, Module::v_proj, on_gradient);
    project(mixed, Module::q_proj, t.input);
  } else {
    project(value_gradient, Module::v_proj);
    project(key_gradient, Module::k_proj);
    if (gates_output(s)) {
      const Tensor both = w.temporary("gradient of queries and gates", 2 * query(s));
      w.free({query_gradient, gate});
      query_gradient = both;
    }
    project(query_gradient, Module::q_proj, t.input);
  }
  return write_input_reduction(w, s, input.sum());
}

std::vector<Tensor> tensors_of(const EagerAttention& t) {
  std::vector<Tensor> list = tensors_of(t.norm);
  list.push_back(t.input);
  const auto add = [&](const std::vector<Tensor>& more) {
    list.insert(list.end(), more.begin(), more.end());
  };
  add(t.latents);
  add(tensors_of(t.query_norm));
  add(tensors_of(t.key_norm));
  add(t.raw);
  add(tensors_of(t.kernel));
  for (const Tensor tensor : {t.sigmoid, t.gated}) list.push_back(tensor);
  add(tensors_of(t.delta_rule));
  add(tensors_of(t.state_space));
  return list;
}

}  // namespace zeroplan
