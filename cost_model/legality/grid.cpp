// Do the GPUs divide as asked? Front door: world.
#include <fmt/format.h>

#include <algorithm>

#include "cost_model/legality/reasons.hpp"

namespace zeroplan::legality {

// Byte counts are 64-bit; what no machine could hold is refused before they overflow.
Reason magnitude(const Problem& p) {
  constexpr double most_bytes = 1e17;
  const auto d = [](std::int64_t value) { return static_cast<double>(value); };
  const ModelSpec& m = p.model;
  const double experts =
      m.moe ? d(m.moe->experts_per_token) * d(m.moe->intermediate_size + m.hidden_size) +
                  d(m.moe->shared_intermediate_size + m.moe->experts)
            : 0;
  // Scores of unfused attention, and the mask that a dataloader makes.
  const double pairs = d(p.training.sequence_length);
  const double scores =
      p.training.attention == AttentionKernel::unfused ? d(m.attention.heads) * pairs : 0;
  const double mask = p.runtime.megatron.create_attention_mask_in_dataloader ? pairs : 0;
  const double widest = d(m.vocab_size) + mask +
                        8 * (d(m.hidden_size) + d(m.mlp.intermediate_size) + experts + scores +
                             d(query_width(m.attention)));
  const double tokens = d(p.training.sequence_length) * d(p.layout.micro_batch);
  return because(16 * tokens * widest > most_bytes,
                 "{} tokens x micro-batch {} need more memory than any machine has",
                 p.training.sequence_length, p.layout.micro_batch);
}

Reason world(const Problem& p) {
  const Layout& l = p.layout;
  const std::int64_t each = l.tp * l.pp * l.cp;
  std::string grid = fmt::format("tp {} x pp {}", l.tp, l.pp);
  if (l.cp > 1) grid += fmt::format(" x cp {}", l.cp);
  return because(p.cluster.gpus % each != 0, "{} GPUs cannot be split into {} ({} each)",
                 p.cluster.gpus, grid, each);
}

Reason dense_only(const Problem& p) {
  const Layout& l = p.layout;
  return because(!p.model.moe && (l.ep > 1 || l.etp > 1),
                 "{} has no experts, so ep {} has nothing to divide", p.model.name,
                 std::max(l.ep, l.etp));
}

Reason expert_grid(const Problem& p) {
  const Layout& l = p.layout;
  return because(p.cluster.gpus % (l.etp * l.ep * l.pp) != 0,
                 "{} GPUs cannot be split into etp {} x ep {} x pp {}", p.cluster.gpus, l.etp, l.ep,
                 l.pp);
}

Reason no_expert_tensor_parallel(const Problem& p) {
  return because(p.model.moe && p.layout.etp > 1, "{} has no tensor parallelism inside experts",
                 runtime_name(p));
}

Reason hybrid_shards(const Problem& p) {
  const Layout& l = p.layout;
  return because(l.hsdp > 0 && l.dp % l.hsdp != 0, "hsdp {} does not divide dp {}", l.hsdp, l.dp);
}

Reason hybrid_needs_sharding(const Problem& p) {
  return hybrid_needs_stage(p, ZeroStage::optimizer);
}

Reason hybrid_needs_stage(const Problem& p, ZeroStage least) {
  return because(p.layout.hsdp > 0 && p.layout.zero < least, "hsdp needs ZeRO {} in {}",
                 name_of(least), runtime_name(p));
}

Reason no_hybrid(const Problem& p) {
  return because(p.layout.hsdp > 0, "{} has no hybrid sharding", runtime_name(p));
}

}  // namespace zeroplan::legality
