// What does the attention half of a layer allocate? Front door: write_eager_attention.
#include "cost_model/program/eager_layer.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;

bool latent(const EagerShape& s) {
  return s.problem.model.attention.mla.has_value();
}

bool rotary(const EagerShape& s) {
  return s.problem.model.learned_positions == 0;
}

// Keys and values have their own width until they are repeated.
bool repeats(const EagerShape& s) {
  return s.style.repeats_keys && !latent(s) && s.token.key_value < s.token.query;
}

Bytes query(const EagerShape& s) {
  return s.features(s.token.query);
}
Bytes keys(const EagerShape& s) {
  return s.features(s.token.key_value);
}
Bytes values(const EagerShape& s) {
  return s.features(latent(s) ? s.token.output : s.token.key_value);
}

struct Projected {
  Tensor query = BlockWriter::none, key = BlockWriter::none, value = BlockWriter::none;
  Tensor mixed = BlockWriter::none;  // what they are views of, if one projection made them
};

// Queries and keys turned by their positions: complex products in fp32, both at once; or cosine and
// sine in 16 bits, one after the other.
void write_rotation(EagerPass& pass, const EagerShape& s, Projected& p) {
  BlockWriter& w = pass.writer();
  const Projected raw = p;
  if (s.style.complex_rotary) {
    std::vector<Tensor> wide;
    for (const char* name : {"complex operand", "complex product"}) {
      for (const Bytes bytes : {query(s), keys(s)}) wide.push_back(w.temporary(name, 2 * bytes));
    }
    p.query = pass.make("rotated queries", query(s));
    p.key = pass.make("rotated keys", keys(s));
    for (const Tensor tensor : wide) w.free(tensor);
  } else {
    const auto turn = [&](std::string_view name, Bytes bytes) {
      const Tensor cosine = w.temporary("product with cosine", bytes);
      const Tensor half = w.temporary("negated half", Bytes{bytes.count() / 2});
      const Tensor swapped = w.temporary("swapped halves", bytes);
      w.free(half);
      const Tensor sine = w.temporary("product with sine", bytes);
      w.free(swapped);
      const Tensor turned = pass.make(name, bytes);
      w.free(cosine);
      w.free(sine);
      return turned;
    };
    p.query = turn("rotated queries", query(s));
    p.key = turn("rotated keys", keys(s));
  }
  pass.drop(raw.query);
  pass.drop(raw.key);
}

// The way back: gives the gradients of what was turned, in place of the given ones.
void write_rotation_backward(BlockWriter& w,
                             const EagerShape& s,
                             Tensor& query_gradient,
                             Tensor& key_gradient) {
  if (s.style.complex_rotary) {
    const Tensor wide_key = w.temporary("complex key gradient", 2 * keys(s));
    w.free(key_gradient);
    const Tensor wide_query = w.temporary("complex query gradient", 2 * query(s));
    w.free(query_gradient);
    const Tensor turned_key = w.temporary("turned key gradient", 2 * keys(s));
    w.free(wide_key);
    const Tensor turned_query = w.temporary("turned query gradient", 2 * query(s));
    w.free(wide_query);
    key_gradient = w.temporary("raw key gradient", keys(s));
    w.free(turned_key);
    query_gradient = w.temporary("raw query gradient", query(s));
    w.free(turned_query);
    return;
  }
  const auto turn = [&](Tensor& gradient, Bytes bytes) {
    const Tensor sine = w.temporary("product with sine", bytes);
    const Tensor half = w.temporary("negated half", Bytes{bytes.count() / 2});
    const Tensor first = w.temporary("raw gradient", bytes);
    w.free(half);
    const Tensor second = w.temporary("raw gradient of the other half", bytes);
    w.free(sine);
    w.free(second);
    const Tensor cosine = w.temporary("product with cosine", bytes);
    w.free(gradient);
    w.free(cosine);
    gradient = first;
  };
  turn(key_gradient, keys(s));
  turn(query_gradient, query(s));
}

// Keys and values of the whole sequence, gathered over context parallelism as one tensor.
std::vector<Tensor> write_context_gather(BlockWriter& w, const EagerShape& s) {
  const std::int64_t cp = s.problem.layout.cp;
  if (cp == 1) return {};
  const Bytes both = repeats(s) ? 2 * query(s) : keys(s) + values(s);
  return {w.temporary("joined keys and values", both),
          w.temporary("keys and values of the whole sequence", cp * both)};
}

// Scores of attention that is not fused: softmax in fp32 and its 16-bit copy are saved.
void write_scores(EagerPass& pass, const EagerShape& s, std::vector<Tensor>& saved) {
  BlockWriter& w = pass.writer();
  const std::int64_t n = s.token.heads * s.tokens * s.problem.training.sequence_length;
  const Tensor raw = w.temporary("scores", Bytes{s.token.element * n});
  const Tensor scaled = w.temporary("scaled scores", Bytes{s.token.element * n});
  w.free(raw);
  saved.push_back(pass.make("fp32 softmax", Bytes{fp32 * n}));
  w.free(scaled);
  saved.push_back(pass.make("softmax", Bytes{s.token.element * n}));
}

void write_scores_backward(BlockWriter& w, const EagerShape& s) {
  const std::int64_t n = s.token.heads * s.tokens * s.problem.training.sequence_length;
  const Tensor probabilities = w.temporary("softmax gradient", Bytes{s.token.element * n});
  const Tensor wide = w.temporary("fp32 softmax gradient", Bytes{fp32 * n});
  w.free(probabilities);
  const Tensor input = w.temporary("fp32 score gradient", Bytes{fp32 * n});
  w.free(wide);
  const Tensor scores = w.temporary("scaled score gradient", Bytes{s.token.element * n});
  w.free(input);
  w.free(w.temporary("score gradient", Bytes{s.token.element * n}));
  w.free(scores);
}

// Gradients of what the kernel read, once it has run; frees what it read.
struct KernelGradients {
  Tensor query, key, value;
};
KernelGradients write_kernel_backward(BlockWriter& w,
                                      const EagerShape& s,
                                      const EagerAttention& t,
                                      Tensor output) {
  const bool repeated = repeats(s);
  std::vector<Tensor> copies = write_context_gather(w, s);
  if (repeated && s.style.compiled) {
    for (const char* name : {"repeated keys", "repeated values"})
      copies.push_back(w.temporary(name, query(s)));
  }
  KernelGradients g{.query = w.temporary("query gradient", query(s)),
                    .key = w.temporary("key gradient", repeated ? query(s) : keys(s)),
                    .value = w.temporary("value gradient", repeated ? query(s) : values(s))};
  if (s.problem.training.attention == AttentionKernel::unfused) {
    write_scores_backward(w, s);
  } else {
    // flash-attn works in fp32 on heads padded to 32, and on a copy of keys and values for each
    // query head where they are fewer.
    constexpr std::int64_t unit = 32;
    const std::int64_t head = s.token.query / s.token.heads;
    const Tensor sums = w.temporary("row sums", Bytes{fp32 * s.token.heads * s.tokens});
    const Tensor wide = w.temporary("fp32 query gradient",
                                    Bytes{fp32 * s.token.heads * round_up(head, unit) * s.tokens});
    const bool expands = !repeated && s.token.key_value < s.token.query;
    const Tensor key = w.temporary("key gradient by query head", expands ? query(s) : Bytes{});
    const Tensor value = w.temporary("value gradient by query head", expands ? query(s) : Bytes{});
    for (const Tensor tensor : {sums, wide, key, value}) w.free(tensor);
  }
  w.free(output);
  for (const Tensor copy : copies) w.free(copy);
  for (const Tensor tensor : t.kernel) w.free(tensor);
  if (repeated) {
    const Tensor value = w.temporary("summed value gradient", keys(s));
    w.free(g.value);
    const Tensor key = w.temporary("summed key gradient", keys(s));
    w.free(g.key);
    g = {g.query, key, value};
  }
  return g;
}

void write_head_norms(EagerPass& pass, const EagerShape& s, Projected& p, EagerAttention& t) {
  const std::int64_t kv_heads = s.token.key_value / s.problem.model.attention.head_dim;
  t.query_norm = write_eager_norm(pass, s, query(s), Bytes{fp32 * s.token.heads * s.tokens});
  t.key_norm = write_eager_norm(pass, s, keys(s), Bytes{fp32 * kv_heads * s.tokens});
  // Without rotation the kernel reads the norms' outputs themselves.
  t.raw = {p.query, p.key};
  p.query = t.query_norm.output;
  p.key = t.key_norm.output;
  if (is_composite(s)) {  // which keeps its input in fp32 instead
    pass.drop(t.raw);
    t.raw.clear();
  }
}

Projected write_grouped_projections(EagerPass& pass, const EagerShape& s) {
  if (s.style.fused_qkv) {
    return {.mixed = pass.multiply("mixed qkv", query(s) + keys(s) + values(s))};
  }
  Projected p;
  p.query = pass.multiply("queries", query(s));
  p.key = pass.multiply("keys", keys(s));
  p.value = pass.multiply("values", values(s));
  return p;
}

Projected write_latent_projections(EagerPass& pass, const EagerShape& s, EagerAttention& t) {
  const MlaSpec& mla = *s.problem.model.attention.mla;
  Projected p;
  const auto write_latent = [&](std::string_view name, std::int64_t width, std::int64_t rank) {
    t.latents.push_back(pass.multiply(name, s.features(width)));
    const EagerNorm norm = write_eager_norm(pass, s, s.features(rank), Bytes{fp32 * s.tokens});
    for (const Tensor tensor : tensors_of(norm)) t.latents.push_back(tensor);
  };
  if (mla.q_lora_rank > 0) write_latent("query latent", mla.q_lora_rank, mla.q_lora_rank);
  const Tensor up = pass.multiply("queries", query(s));
  write_latent("key-value latent with rotary part", mla.kv_lora_rank + mla.qk_rope_head_dim,
               mla.kv_lora_rank);
  const Tensor mixed =
      pass.multiply("up-projected keys and values",
                    s.features(s.token.heads * mla.qk_nope_head_dim + s.token.output));
  // The rotary parts are turned apart and joined to the rest: new tensors.
  p.query = pass.make("joined queries", query(s));
  p.key = pass.make("joined keys", keys(s));
  p.value = pass.make("values", values(s));
  pass.drop(up);
  pass.drop(mixed);
  return p;
}

// Copies of keys and values for each query head. The compiler makes them again in the backward
// pass, eager code keeps them instead of what they are copies of.
std::vector<Tensor> write_repetition(EagerPass& pass, const EagerShape& s, Projected& p) {
  if (s.style.compiled) {
    BlockWriter& w = pass.writer();
    return {w.temporary("repeated keys", query(s)), w.temporary("repeated values", query(s))};
  }
  const Tensor key = pass.make("repeated keys", query(s));
  const Tensor value = pass.make("repeated values", query(s));
  pass.drop(p.key);
  pass.drop(p.value);
  p.key = key;
  p.value = value;
  return {};
}

}  // namespace

EagerAttention write_eager_attention(EagerPass& pass, const EagerShape& s) {
  EagerAttention t{.norm = write_eager_norm(pass, s, s.residual(), s.norm_statistics())};
  t.input = write_linear_input(pass, s, t.norm);
  Projected p =
      latent(s) ? write_latent_projections(pass, s, t) : write_grouped_projections(pass, s);
  const bool normed = s.problem.model.attention.qk_norm && !latent(s);
  if (normed) write_head_norms(pass, s, p, t);
  if (rotary(s) && !latent(s)) {
    write_rotation(pass, s, p);
    if (normed) t.query_norm.output = t.key_norm.output = BlockWriter::none;
    if (p.mixed != BlockWriter::none) t.kernel.push_back(p.mixed);  // the values are a view of it
  }
  std::vector<Tensor> copies;
  if (repeats(s)) copies = write_repetition(pass, s, p);
  if (s.style.compiled) pass.done(t.input);  // its last reader has run
  for (const Tensor tensor : write_context_gather(pass.writer(), s)) copies.push_back(tensor);
  for (const Tensor tensor : {p.query, p.key, p.value}) t.kernel.push_back(tensor);
  if (!rotary(s) && p.mixed != BlockWriter::none) t.kernel.push_back(p.mixed);
  if (s.problem.training.attention == AttentionKernel::unfused) {
    write_scores(pass, s, t.kernel);
    t.kernel.push_back(pass.keep("attention output", s.features(s.token.output)));
  } else {
    t.kernel.push_back(pass.keep("attention output", s.features(s.token.output)));
    t.kernel.push_back(pass.keep("log-sum-exp", Bytes{fp32 * s.token.heads * s.tokens}));
    t.kernel.push_back(pass.keep("random state", Bytes{2 * allocation_unit}));
  }
  for (const Tensor copy : copies) pass.writer().free(copy);
  const Tensor projected = pass.multiply("projection output", s.features(s.token.hidden));
  for (std::vector<Tensor>* list : {&t.latents, &t.raw, &t.kernel}) pass.done(*list);
  pass.done(t.input);
  t.result = write_row_reduction(pass, s, projected);
  return t;
}

Tensor write_eager_attention_backward(BlockWriter& w,
                                      const EagerShape& s,
                                      const EagerAttention& t,
                                      const OnGradient& on_gradient) {
  const Tensor whole = w.temporary("gathered output gradient", s.gathered());
  on_gradient(w, "o_proj", s.elements("o_proj"));
  const Tensor output = w.temporary("attention output gradient", s.features(s.token.output));
  w.free(whole);
  auto [query_gradient, key_gradient, value_gradient] = write_kernel_backward(w, s, t, output);
  if (rotary(s) && !latent(s)) write_rotation_backward(w, s, query_gradient, key_gradient);
  if (s.problem.model.attention.qk_norm && !latent(s)) {
    query_gradient = write_eager_norm_backward(w, t.query_norm, query(s), query_gradient);
    key_gradient = write_eager_norm_backward(w, t.key_norm, keys(s), key_gradient);
    for (const Tensor tensor : {t.query_norm.output, t.key_norm.output}) w.free(tensor);
    for (const Tensor tensor : t.raw) w.free(tensor);
  }

  InputGradient input(w, s.features(s.token.hidden));
  const auto project = [&](Tensor gradient, std::string_view weight) {
    on_gradient(w, weight, s.elements(weight));
    const Tensor part = input.make();
    w.free(gradient);
    input.add(part);
  };
  if (latent(s)) {
    // Through the up-projections to the latents, which are narrow.
    on_gradient(w, "kv_b_proj", s.elements("kv_b_proj"));
    w.free(key_gradient);
    w.free(value_gradient);
    project(BlockWriter::none, "kv_a_proj");
    const bool low_rank = s.problem.model.attention.mla->q_lora_rank > 0;
    if (low_rank) on_gradient(w, "q_b_proj", s.elements("q_b_proj"));
    project(query_gradient, low_rank ? "q_a_proj" : "q_proj");
    for (const Tensor tensor : t.latents) w.free(tensor);
  } else if (s.style.fused_qkv) {
    const Tensor mixed = w.temporary("mixed qkv gradient", query(s) + keys(s) + values(s));
    for (const Tensor tensor : {query_gradient, key_gradient, value_gradient}) w.free(tensor);
    on_gradient(w, "k_proj", s.elements("k_proj"));
    on_gradient(w, "v_proj", s.elements("v_proj"));
    project(mixed, "q_proj");
  } else {
    project(value_gradient, "v_proj");
    project(key_gradient, "k_proj");
    project(query_gradient, "q_proj");
  }
  w.free(t.input);
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
  add(t.kernel);
  return list;
}

}  // namespace zeroplan
