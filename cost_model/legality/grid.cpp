// Do the GPUs divide as asked? Front door: world.
#include <fmt/format.h>

#include <algorithm>

#include "cost_model/legality/reasons.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"
#include "cost_model/states/secondary_copy.hpp"

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

Reason experts_in_shard_group(const Problem& p) {
  const Layout& l = p.layout;
  const std::int64_t group = (l.hsdp > 0 ? l.hsdp : l.dp) * l.cp * l.tp;
  return because(group % l.ep != 0, "ep {} does not divide the {} ranks of a sharding group", l.ep,
                 group);
}

// pytorch torch/distributed/fsdp/_fully_shard/_fsdp_param.py _init_sharded_param: no uneven
// sharding on a dimension other than the first.
Reason expert_rows_divide(const Problem& p) {
  if (!p.model.moe || !cuts_expert_rows(p) || hybrid_shards(p)) return std::nullopt;
  const std::int64_t width = shard_widths(p).expert;
  const MoeSpec& moe = *p.model.moe;
  const bool divide = moe.intermediate_size % width == 0 && p.model.hidden_size % width == 0;
  return because(width > moe.experts / p.layout.ep && !divide,
                 "FSDP2 cuts experts evenly along their rows: {} ranks do not divide {} and {}",
                 width, moe.intermediate_size, p.model.hidden_size);
}

Reason no_expert_tensor_parallel(const Problem& p) {
  return because(p.model.moe && p.layout.etp > 1, "{} has no tensor parallelism inside experts",
                 runtime_name(p));
}

Reason hybrid_shards(const Problem& p) {
  const Layout& l = p.layout;
  const std::int64_t mics = p.runtime.deepspeed.mics_shard_size;
  if (p.runtime.kind == Runtime::deepspeed && mics > 0 && mics != l.hsdp) {
    return fmt::format("hsdp {} is not mics_shard_size {}, which names the same", l.hsdp, mics);
  }
  return because(l.hsdp > 0 && l.dp % l.hsdp != 0, "hsdp {} does not divide dp {}", l.hsdp, l.dp);
}

Reason hybrid_needs_sharding(const Problem& p) {
  const ZeroStage least =
      p.runtime.kind == Runtime::deepspeed ? ZeroStage::parameters : ZeroStage::optimizer;
  return because(p.layout.hsdp > 0 && p.layout.zero < least, "hsdp needs ZeRO {} in {}",
                 name_of(least), runtime_name(p));
}

Reason no_hybrid(const Problem& p) {
  return because(p.layout.hsdp > 0, "{} has no hybrid sharding", runtime_name(p));
}

// DeepSpeed utils/groups.py: no group is wider than the world.
Reason secondary_divides(const Problem& p) {
  const std::int64_t size = secondary_ranks(p);
  const std::int64_t replicas = p.layout.dp * p.layout.cp;
  if (p.layout.zero != ZeroStage::parameters || replicas % size == 0) return std::nullopt;
  std::int64_t below = size - 1;
  while (replicas % below != 0) --below;
  return fmt::format(
      "zero_hpz_partition_size {} does not divide the {} ranks that share the parameters; "
      "--set zero_hpz_partition_size={} would",
      size, replicas, below);
}

Reason data_parallel_only(const Problem& p) {
  const Layout& l = p.layout;
  return because(l.tp * l.pp * l.cp * l.ep > 1, "{} is data parallel only", runtime_name(p));
}

Reason engine_grid(const Problem& p) {
  const Layout& l = p.layout;
  return because(l.cp * l.ep * l.etp > 1, "zeroplan's engine divides over dp, tp and pp alone");
}

}  // namespace zeroplan::legality
