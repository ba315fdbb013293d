// Do the widths of model and sequence divide as asked? Front door: heads.
#include <algorithm>

#include "cost_model/legality/reasons.hpp"

namespace zeroplan::legality {
namespace {

// Of keys, as attention sees them: latent ones are widened to as many as there are queries.
std::int64_t key_heads(const Problem& p) {
  const AttentionSpec& a = p.model.attention;
  return a.mla ? a.heads : a.kv_heads;
}

}  // namespace

Reason heads(const Problem& p) {
  return because(p.model.attention.heads % p.layout.tp != 0,
                 "{} attention heads do not divide over tp {}", p.model.attention.heads,
                 p.layout.tp);
}

Reason kv_heads_or_replicas(const Problem& p) {
  const std::int64_t kv = p.model.attention.kv_heads;
  return because(kv % p.layout.tp != 0 && p.layout.tp % kv != 0,
                 "{} key-value heads and tp {}: neither divides the other", kv, p.layout.tp);
}

// DeepSpeed's is Megatron-DeepSpeed's megatron/model/transformer.py ParallelAttention, the layers
// that run where tp is above 1; AutoTP, which leaves ranks without heads, is not modelled.
Reason kv_heads(const Problem& p) {
  const std::int64_t kv = p.model.attention.kv_heads;
  return because(kv % p.layout.tp != 0,
                 "{} key-value heads do not divide over tp {}, and {} does not replicate them", kv,
                 p.layout.tp, runtime_name(p));
}

Reason mlp_width(const Problem& p) {
  const std::int64_t width = p.model.mlp.intermediate_size;
  return because(width % p.layout.tp != 0, "intermediate size {} is not a multiple of tp {}", width,
                 p.layout.tp);
}

Reason hidden_width(const Problem& p) {
  return because(p.model.hidden_size % p.layout.tp != 0,
                 "hidden size {} is not a multiple of tp {}", p.model.hidden_size, p.layout.tp);
}

Reason experts(const Problem& p) {
  return because(p.model.moe && p.model.moe->experts % p.layout.ep != 0,
                 "{} experts do not divide over ep {}", p.model.moe ? p.model.moe->experts : 0,
                 p.layout.ep);
}

Reason expert_width(const Problem& p) {
  return because(p.model.moe && p.model.moe->intermediate_size % p.layout.etp != 0,
                 "expert width {} is not a multiple of etp {}",
                 p.model.moe ? p.model.moe->intermediate_size : 0, p.layout.etp);
}

Reason context_halves(const Problem& p) {
  const std::int64_t cp = p.layout.cp;
  return because(cp > 1 && p.training.sequence_length % (2 * cp) != 0,
                 "{} tokens cannot be cut into the 2 x cp = {} chunks of context parallelism",
                 p.training.sequence_length, 2 * cp);
}

// Transformer Engine attention/dot_product_attention/context_parallel.py: each rank of the exchange
// takes its part of the heads that the tensor rank has, of which Megatron leaves at least one.
Reason all_to_all_heads(const Problem& p) {
  const std::int64_t cp = p.layout.cp;
  if (cp == 1 || p.runtime.megatron.cp_comm_type != ContextTransport::a2a) return std::nullopt;
  const std::int64_t queries = p.model.attention.heads / p.layout.tp;
  const std::int64_t keys = std::max<std::int64_t>(1, key_heads(p) / p.layout.tp);
  return because(queries % cp != 0 || keys % cp != 0,
                 "cp {} by all-to-all must divide the {} query and {} key-value heads of a rank; "
                 "--set cp_comm_type=p2p does without",
                 cp, queries, keys);
}

Reason context_heads(const Problem& p) {
  const std::int64_t cp = p.layout.cp;
  return because(p.model.attention.heads % cp != 0 || p.training.sequence_length % cp != 0,
                 "cp {} (Ulysses) must divide {} heads and {} tokens", cp, p.model.attention.heads,
                 p.training.sequence_length);
}

// runtime/sequence_parallel/ulysses_sp.py, which serves Hugging Face's layers.
Reason context_kv_heads(const Problem& p) {
  const std::int64_t cp = p.layout.cp;
  const std::int64_t kv = key_heads(p);
  return because(!runs_megatron_layers(p) && kv % cp != 0 && cp % kv != 0,
                 "cp {} (Ulysses) and {} key-value heads: neither divides the other", cp, kv);
}

Reason sequence_rows(const Problem& p) {
  const Layout& l = p.layout;
  return because(l.sequence_parallel && p.training.sequence_length / l.cp % l.tp != 0,
                 "{} tokens of a context rank do not divide over tp {} with sequence parallelism",
                 p.training.sequence_length / l.cp, l.tp);
}

Reason sequence_parallel_needs_tp(const Problem& p) {
  return because(p.layout.sequence_parallel && p.layout.tp == 1,
                 "sequence parallelism needs tp above 1");
}

Reason no_sequence_parallel(const Problem& p) {
  return because(p.layout.sequence_parallel, "{} has no sequence parallelism", runtime_name(p));
}

Reason moe_needs_sequence_parallel(const Problem& p) {
  return because(p.model.moe && p.layout.tp > 1 && !p.layout.sequence_parallel,
                 "MoE layers with tp {} need sequence parallelism", p.layout.tp);
}

Reason tp_overlap_needs_sequence_parallel(const Problem& p) {
  return because(p.runtime.megatron.tp_comm_overlap && !p.layout.sequence_parallel,
                 "tp_comm_overlap needs sequence parallelism, so tp above 1, or "
                 "--set tp_comm_overlap=false");
}

Reason positions(const Problem& p) {
  return because(p.model.learned_positions > 0 &&
                     p.training.sequence_length > p.model.max_position_embeddings &&
                     p.model.max_position_embeddings > 0,
                 "{} has {} learned positions, fewer than {} tokens", p.model.name,
                 p.model.max_position_embeddings, p.training.sequence_length);
}

}  // namespace zeroplan::legality
