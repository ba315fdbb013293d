// Can the runtime execute this layout? Front door: first_violation.
//
// Sources, by prefix of the rule: M Megatron-LM @d98e8a64dd training/arguments.py,
// core/transformer/transformer_config.py, core/parallel_state.py,
// core/pipeline_parallel/schedules.py; T torchtitan @b5bcd76c6 distributed/parallel_dims.py,
// distributed/pipeline_parallel.py, models/common/decoder.py; D DeepSpeed @edaa72212
// runtime/config.py, runtime/pipe/engine.py, moe/layer.py; N nanotron @67c5ebb6 trainer.py; G holds
// for every runtime by arithmetic.
#include "cost_model/legality.hpp"

#include "cost_model/legality/reasons.hpp"

namespace zeroplan {
namespace {

constexpr unsigned bit(Runtime runtime) {
  return 1U << static_cast<unsigned>(runtime);
}
constexpr unsigned megatron = bit(Runtime::megatron);
constexpr unsigned fsdp2 = bit(Runtime::fsdp2);
constexpr unsigned ddp = bit(Runtime::ddp);
constexpr unsigned deepspeed = bit(Runtime::deepspeed);
constexpr unsigned paper = bit(Runtime::zero_paper);
constexpr unsigned engine = bit(Runtime::zeroplan);
constexpr unsigned nanotron = bit(Runtime::nanotron);
constexpr unsigned all = megatron | fsdp2 | ddp | deepspeed | paper | engine | nanotron;
constexpr unsigned real = all & ~paper;  // executes a step; the paper only counts

using namespace legality;  // NOLINT: the rows below name every function in it

constexpr Rule table[] = {
    {"G-magnitude", all, Field::sequence_length, magnitude},
    {"G-world", all, Field::pp, world},
    {"G-data-parallel-only", ddp | engine, Field::tp, data_parallel_only},
    {"G-experts", all, Field::ep, dense_only},
    {"M-expert-grid", megatron | deepspeed | paper, Field::ep, expert_grid},
    {"T-expert-group", fsdp2, Field::ep, experts_in_shard_group},
    {"T-etp", fsdp2 | deepspeed, Field::etp, no_expert_tensor_parallel},
    {"G-hybrid-divides", megatron | fsdp2 | deepspeed, Field::hsdp, hybrid_shards},
    {"G-hybrid-stage", megatron | fsdp2 | deepspeed, Field::hsdp, hybrid_needs_sharding},
    {"G-hybrid", ddp | paper | engine | nanotron, Field::hsdp, no_hybrid},

    {"M-heads", real, Field::tp, heads},
    {"M-kv-heads", megatron | nanotron, Field::tp, kv_heads_or_replicas},
    {"T-kv-heads", fsdp2, Field::tp, kv_heads},
    {"M-hidden-width", megatron | fsdp2 | nanotron, Field::tp, hidden_width},
    {"M-mlp-width", real, Field::tp, mlp_width},
    {"M-experts", all, Field::ep, experts},
    {"M-expert-width", megatron, Field::etp, expert_width},

    {"G-sequence-parallel", megatron | fsdp2 | paper | nanotron, Field::sequence_parallel,
     sequence_parallel_needs_tp},
    {"G-no-sequence-parallel", ddp | deepspeed | engine, Field::sequence_parallel,
     no_sequence_parallel},
    {"M-context", megatron | fsdp2, Field::cp, context_halves},
    {"D-context", deepspeed | paper, Field::cp, context_heads},
    {"M-sequence-rows", megatron | fsdp2 | nanotron, Field::tp, sequence_rows},
    {"M-moe-sequence-parallel", megatron, Field::sequence_parallel, moe_needs_sequence_parallel},
    {"M-positions", real, Field::sequence_length, positions},

    {"G-layers", all, Field::pp, enough_layers},
    {"G-schedule", all, Field::schedule, schedule_known},
    {"G-schedule-pipeline", all, Field::schedule, schedule_needs_pipeline},
    {"G-chunks", all, Field::vpp, chunks_fit_schedule},
    {"M-split", all, Field::pp, splittable},
    {"T-tied", fsdp2, Field::pp, no_tied_pipeline},

    {"G-batch", all, Field::global_batch, batch},
    {"M-interleaved-batch", megatron, Field::global_batch, interleaved_groups},
    {"T-micro-batches", fsdp2, Field::global_batch, torch_micro_batches},
    {"G-dualpipe", all, Field::global_batch, dualpipe_pairs},

    {"T-stage", fsdp2, Field::zero, fsdp_always_shards},
    {"G-ddp-stage", ddp, Field::zero, ddp_never_shards},
    {"N-stage", nanotron, Field::zero, nanotron_stage},
    {"N-context", nanotron, Field::cp, no_context},
    {"N-experts", nanotron, Field::ep, nanotron_dense},
    {"D-pipeline-stage", deepspeed, Field::zero, deepspeed_pipeline_stage},
    {"D-expert-stage", deepspeed, Field::zero, deepspeed_experts_stage},
    {"D-accumulation", deepspeed, Field::zero, deepspeed_accumulation},
    {"M-fsdp-optimizer", megatron, Field::optimizer, megatron_fsdp_optimizer},
    {"M-optimizer", megatron, Field::optimizer, megatron_optimizer},
    {"G-precision", real, Field::precision, number_format},
    {"G-fp8", ddp | deepspeed | paper | engine | nanotron, Field::precision, no_fp8},
    {"G-recompute", ddp | deepspeed | paper | engine | nanotron, Field::recompute,
     full_recompute_only},
    {"G-offload", all, Field::offload, offload_known},
};

}  // namespace

std::span<const Rule> rules() {
  return table;
}

std::optional<Violation> first_violation(const Problem& problem) {
  const unsigned runtime = bit(problem.runtime.kind);
  for (const Rule& rule : table) {
    if ((rule.runtimes & runtime) == 0) continue;
    if (Reason reason = rule.broken(problem))
      return Violation{rule.id, rule.field, std::move(*reason)};
  }
  return std::nullopt;
}

}  // namespace zeroplan
