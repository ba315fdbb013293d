// What does DeepSpeed refuse? Front door: deepspeed_rules.
//
// Sources: DeepSpeed @edaa72212 runtime/config.py, runtime/pipe/engine.py, moe/layer.py.
#include "cost_model/runtime/deepspeed/code.hpp"

#include "cost_model/legality/shared_rules.hpp"
#include "cost_model/runtime/pytorch_layers/attention_classes.hpp"
#include "cost_model/states/secondary_copy.hpp"

namespace zeroplan {
namespace {

using namespace legality;  // NOLINT: the rows below name what is in it
using enum Field;

constexpr std::int64_t most_checkpoints = 10'000;

bool pipelined(const Problem& p) {
  return p.layout.pp > 1;
}

// runtime/sequence_parallel/ulysses_sp.py, which serves Hugging Face's layers.
Reason context_kv_heads(const Problem& p) {
  const std::int64_t cp = p.layout.cp;
  const std::int64_t kv = key_heads(p);
  return because(!runs_megatron_layers(p) && kv % cp != 0 && cp % kv != 0,
                 "cp {} (Ulysses) and {} key-value heads: neither divides the other", cp, kv);
}

// Contiguous checkpoints act only with partitioned activations; a pipeline's micro-batches share
// one set of buffers.
Reason deepspeed_contiguous(const Problem& p) {
  const DeepspeedSettings& d = p.runtime.deepspeed;
  if (d.number_checkpoints > most_checkpoints) {
    return fmt::format("number_checkpoints {} is above {}", d.number_checkpoints, most_checkpoints);
  }
  return because(d.contiguous_checkpoints && (!d.partition_activations || pipelined(p)),
                 "contiguous_memory_optimization needs partition_activations, and pp 1");
}

Reason deepspeed_pipeline_stage(const Problem& p) {
  return because(pipelined(p) && p.layout.zero > ZeroStage::optimizer,
                 "DeepSpeed's pipeline reduces gradients once a step, so it refuses ZeRO {}",
                 name_of(p.layout.zero));
}

Reason deepspeed_experts_stage(const Problem& p) {
  return because(p.layout.ep > 1 && p.layout.zero == ZeroStage::parameters,
                 "DeepSpeed's expert parallelism does not work with ZeRO 3");
}

Reason deepspeed_accumulation(const Problem& p) {
  return because(p.runtime.deepspeed.fp32_grad_accumulation && p.layout.zero == ZeroStage::none,
                 "fp32 gradient accumulation needs ZeRO 1 or above in DeepSpeed");
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

// runtime/zero/mics.py.
Reason no_offload_in_hybrid(const Problem& p) {
  return because(p.layout.hsdp > 0 && p.layout.offload != Offload::none,
                 "DeepSpeed's MiCS (hsdp {}) does not offload", p.layout.hsdp);
}

// Offload of activations moves checkpoints to the host.
Reason deepspeed_offload(const Problem& p) {
  const Offload asked = p.layout.offload;
  switch (asked) {
    case Offload::none:
      return std::nullopt;
    case Offload::activations:
      return because(p.layout.recompute != Recompute::full || !runs_megatron_layers(p),
                     "DeepSpeed moves checkpoints to the host: offload of activations needs "
                     "recompute full, and Megatron-DeepSpeed's layers (tp or pp above 1)");
    case Offload::optimizer:
      return because(p.layout.zero < ZeroStage::optimizer,
                     "offload of {} needs ZeRO 1 or above in DeepSpeed", name_of(asked));
    case Offload::parameters:
      return because(p.layout.zero < ZeroStage::parameters,
                     "offload of {} needs ZeRO 3 in DeepSpeed", name_of(asked));
  }
  return std::nullopt;
}

// MiCS says the width of a sharding group by a setting of its own.
Reason mics_shards(const Problem& p) {
  const std::int64_t mics = p.runtime.deepspeed.mics_shard_size;
  if (mics > 0 && mics != p.layout.hsdp) {
    return fmt::format("hsdp {} is not mics_shard_size {}, which names the same", p.layout.hsdp,
                       mics);
  }
  return hybrid_shards(p);
}

Reason mics_needs_stage_3(const Problem& p) {
  return hybrid_needs_stage(p, ZeroStage::parameters);
}

constexpr Rule rows[] = {
    rules::positions,
    rules::no_expert_latents,
    rules::number_format,
    rules::no_fp8,
    rules::flash_attention,
    rules::magnitude,
    rules::heads,
    rules::kv_heads,
    rules::mlp_width,
    rules::context_heads,
    rules::world,
    rules::linear_attention,
    {"D-context-kv", cp, set_of({tp, cp, pp}), context_kv_heads},
    {"D-contiguous", pp, set_of({pp}), deepspeed_contiguous},
    rules::batch,
    rules::experts,
    rules::dense_only,
    rules::expert_grid,
    rules::no_expert_tensor_parallel,
    rules::enough_layers,
    rules::no_sequence_parallel,
    rules::splittable,
    rules::schedule_known,
    rules::schedule_needs_pipeline,
    rules::chunks_fit_schedule,
    rules::dualpipe_pairs,
    rules::full_recompute_only,
    {"D-pipeline-stage", zero, set_of({pp, zero}), deepspeed_pipeline_stage},
    {"D-expert-stage", zero, set_of({ep, zero}), deepspeed_experts_stage},
    {"D-accumulation", zero, set_of({zero}), deepspeed_accumulation},
    {"D-secondary", knobs, set_of({tp, cp, pp, zero}), secondary_divides},
    {"G-offload", offload, set_of({zero, offload}), deepspeed_offload},
    {"G-hybrid-divides", hsdp, set_of({tp, cp, pp, hsdp}), mics_shards},
    {"D-hybrid-offload", offload, set_of({offload, hsdp}), no_offload_in_hybrid},
    {"G-hybrid-stage", hsdp, set_of({hsdp, zero}), mics_needs_stage_3},
};

}  // namespace

constexpr RuleBook deepspeed_rules(rows);

}  // namespace zeroplan
