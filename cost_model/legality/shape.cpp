// Do the widths of model and sequence divide as asked? Front door: heads.
#include "cost_model/legality/reasons.hpp"

namespace zeroplan::legality {
std::int64_t key_heads(const Problem& p) {
  const AttentionSpec& a = p.model.attention;
  return a.mla ? a.heads : a.kv_heads;
}

Reason heads(const Problem& p) {
  return because(p.model.attention.heads % p.layout.tp != 0,
                 "{} attention heads do not divide over tp {}", p.model.attention.heads,
                 p.layout.tp);
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

Reason context_halves(const Problem& p) {
  const std::int64_t cp = p.layout.cp;
  return because(cp > 1 && p.training.sequence_length % (2 * cp) != 0,
                 "{} tokens cannot be cut into the 2 x cp = {} chunks of context parallelism",
                 p.training.sequence_length, 2 * cp);
}

Reason context_heads(const Problem& p) {
  const std::int64_t cp = p.layout.cp;
  return because(p.model.attention.heads % cp != 0 || p.training.sequence_length % cp != 0,
                 "cp {} (Ulysses) must divide {} heads and {} tokens", cp, p.model.attention.heads,
                 p.training.sequence_length);
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

Reason positions(const Problem& p) {
  return because(p.model.learned_positions > 0 &&
                     p.training.sequence_length > p.model.max_position_embeddings &&
                     p.model.max_position_embeddings > 0,
                 "{} has {} learned positions, fewer than {} tokens", p.model.name,
                 p.model.max_position_embeddings, p.training.sequence_length);
}

bool is_hybrid(const ModelSpec& model) {
  return keeps_states(model) || model.attention.output_gate;
}

// What it has that others lack; Trinity has the gate alone, and keeps no state.
std::string_view part_of_hybrid(const ModelSpec& model) {
  return model.state_space        ? "a state space"
         : model.linear_attention ? "linear attention"
                                  : "a gate of what attention gives";
}

Reason no_linear_attention(const Problem& p) {
  if (p.model.state_space) {
    return fmt::format(
        "a state space, which {} has, is described in Megatron-Core's layers, --runtime megatron, "
        "and Transformers' of 16 bits: --runtime fsdp2 --set layers=huggingface, --runtime "
        "deepspeed or ddp",
        p.model.name);
  }
  return because(
      is_hybrid(p.model),
      "{}, which {} has, is described in Megatron-Core's layers, --runtime megatron, and "
      "Transformers' of 16 bits: --runtime fsdp2 --set layers=huggingface, --runtime deepspeed or "
      "ddp",
      part_of_hybrid(p.model), p.model.name);
}

Reason linear_attention(const Problem& p) {
  if (!is_hybrid(p.model)) return std::nullopt;
  if (!code_of(p).transformers_layers(p) || p.training.precision == Precision::fp32) {
    return no_linear_attention(p);
  }
  const std::string_view what = part_of_hybrid(p.model);
  if (p.runtime.fsdp2.compiles_layers()) {
    return fmt::format("compiled layers with {} are not described: --set compile.enable=false",
                       what);
  }
  if (p.layout.tp > 1) {
    return fmt::format("{} is whole on each rank: tp 1, not {}", what, p.layout.tp);
  }
  if (p.layout.cp > 1 && !keeps_states(p.model)) {
    return fmt::format("{} is described with whole sequences: cp 1, not {}", what, p.layout.cp);
  }
  return because(p.layout.cp > 1,
                 "{} hands a state along the sequence, which context parallelism would divide: cp "
                 "1, not {}",
                 what, p.layout.cp);
}

Reason no_expert_latents(const Problem& p) {
  return because(p.model.moe && p.model.moe->latent_size > 0,
                 "experts of latents, which {} has, are described in Megatron-Core's layers: "
                 "--runtime megatron",
                 p.model.name);
}

}  // namespace zeroplan::legality
