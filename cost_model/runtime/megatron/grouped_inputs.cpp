// What does Megatron's joint projection of queries, keys and values allocate and send? Front door:
// write_grouped_inputs.
#include "cost_model/runtime/megatron/grouped_inputs.hpp"

namespace zeroplan {
namespace {

// Norms of queries and keys save contiguous copies of their inputs, and fp32 statistics of each
// head or of all (TransformerEngine @d0067d0da pytorch/ops/basic/rmsnorm.py).
void save_query_key_norms(BlockWriter& w, const MegatronShape& s, AttentionTensors& t) {
  const AttentionSpec& a = s.problem.model.attention;
  const std::int64_t normed = a.joint_qk_norm ? 2 : s.token.heads + s.token.key_value / a.head_dim;
  const std::int64_t statistics = s.problem.model.norm == Norm::layer ? 8 : 4;
  t.before_norms.push_back(
      w.save("queries and keys before norms", s.features(s.token.query + s.token.key_value)));
  t.saved.push_back(t.before_norms.front());
  t.saved.push_back(w.save("query and key norm statistics", Bytes{statistics * normed * s.tokens}));
  w.run(Module::query_key_norm);
}

// The joint projection of a rank: its queries, keys and values, and the gate of its output.
std::int64_t mixed_width(const MegatronShape& s) {
  const std::int64_t gate = s.problem.model.attention.output_gate ? s.token.query : 0;
  return s.token.query + gate + 2 * s.token.key_value;
}

// Where ranks share a key-value head each projects a part, and all gather all of them
// (core/transformer/attention.py get_query_key_value_tensors, since release 0.16).
bool gathers_projection(const MegatronShape& s) {
  const AttentionSpec& a = s.problem.model.attention;
  return !a.mla && a.kv_heads < s.problem.layout.tp;
}

// Of all ranks.
Bytes whole_projection(const MegatronShape& s) {
  const AttentionSpec& a = s.problem.model.attention;
  return s.features(a.head_dim * (a.heads * (a.output_gate ? 2 : 1) + 2 * a.kv_heads));
}

Bytes part_of_projection(const MegatronShape& s) {
  return Bytes{whole_projection(s).count() / s.problem.layout.tp};
}

// What the joint projection makes. `kept`: something reads it, or a view of it, in the backward
// pass.
Tensor write_projection(BlockWriter& w, const MegatronShape& s, bool kept) {
  const Tensor input = write_column_linear_input(w, s, s.token.hidden);
  const auto make = [&](Bytes bytes) {
    return kept ? w.save("mixed qkv", bytes) : w.temporary("mixed qkv", bytes);
  };
  if (!gathers_projection(s)) {
    const Tensor mixed = make(s.features(mixed_width(s)));
    w.run({Module::qkv, Module::qkv_split});
    w.free(input);
    return mixed;
  }
  const Bytes whole = whole_projection(s);
  const Tensor own = w.temporary("part of mixed qkv", part_of_projection(s));
  w.run({Module::qkv, Module::qkv_split});
  w.free(input);
  const Tensor parts = w.temporary("mixed qkv by rank", whole);
  w.call("tp", Collective::all_gather, whole);
  const Tensor mixed = make(whole);
  w.free({parts, own});
  return mixed;
}

}  // namespace

Tensor write_grouped_inputs(BlockWriter& w,
                            const MegatronShape& s,
                            AttentionTensors& t,
                            TensorList& grouped) {
  const bool rotary = turns_heads(s.problem.model);
  const bool normed = s.problem.model.attention.qk_norm;
  const bool apart = rotary || normed;  // keys too are other tensors than the projection's output
  // Queries of several heads a key stand apart from it, and are brought together
  // (core/transformer/attention.py get_query_key_value_tensors); the kernel wants keys and values
  // made contiguous beside them.
  const bool copied = s.token.query > s.token.key_value;
  // core_attn's checkpoint saves its own inputs instead, of which values are such a view
  // (core/transformer/attention.py _checkpointed_attention_forward).
  const bool viewed = !apart && !copied;
  const bool gated = s.problem.model.attention.output_gate;
  const bool views_gate = gated && s.token.key_value == s.problem.model.attention.head_dim;
  const bool kept = viewed || s.drops(RecomputeModule::core_attn);
  const Tensor mixed = write_projection(w, s, kept || views_gate);
  if (normed) save_query_key_norms(w, s, t);
  if (rotary) w.run(Module::rotary);
  if (kept) t.saved.push_back(mixed);
  if (viewed) t.operands.push_back(mixed);
  const auto name = [&](std::string_view turned, std::string_view only_normed,
                        std::string_view in_order) {
    return rotary ? turned : normed ? only_normed : in_order;
  };
  if (!viewed) {
    t.operands.push_back(w.save(name("rotated queries", "normed queries", "queries in order"),
                                s.features(s.token.query)));
    t.saved.push_back(t.operands.front());
  }
  if (apart || !kept) {
    grouped.push_back(w.save(name("rotated keys", "normed keys", "keys in order"),
                             s.features(s.token.key_value)));
  }
  if (views_gate && !kept) t.gate = mixed;
  if (gated && !views_gate) t.gate = w.save("output gate", s.features(s.token.query));
  if (kept) return BlockWriter::none;
  grouped.push_back(w.save("contiguous values", s.features(s.token.key_value)));
  if (views_gate) return BlockWriter::none;
  if (!apart) return mixed;
  w.free(mixed);
  return BlockWriter::none;
}

Tensor write_gate_backward(BlockWriter& w, const MegatronShape& s, Tensor gate, Tensor& output) {
  const Tensor of_kernel =
      w.temporary("gradient of the kernel's output", s.features(s.token.output));
  const Tensor of_gate = w.temporary("output gate gradient", s.features(s.token.query));
  w.free({gate, output});
  output = of_kernel;
  return of_gate;
}

Bytes mixed_gradient(const MegatronShape& s) {
  return gathers_projection(s)
             ? Bytes{whole_projection(s).count() / s.problem.model.attention.kv_heads}
             : s.features(mixed_width(s));
}

std::int64_t projected_width(const MegatronShape& s) {
  return gathers_projection(s) ? part_of_projection(s).count() / (s.token.element * s.tokens)
                               : mixed_width(s);
}

Tensor write_projection_backward(BlockWriter& w, const MegatronShape& s, Tensor mixed) {
  if (!gathers_projection(s)) return mixed;
  const Bytes whole = whole_projection(s);
  const Tensor padded = w.temporary("mixed qkv gradient of all heads", whole);
  w.free(mixed);
  const Tensor by_rank = w.temporary("mixed qkv gradient by rank", whole);
  const Tensor own = w.temporary("reduced mixed qkv gradient", part_of_projection(s));
  w.call("tp", Collective::reduce_scatter, whole);
  w.free({by_rank, padded});
  return own;
}

}  // namespace zeroplan
