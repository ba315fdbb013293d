// Can the runtime execute this layout? Front door: first_violation.
//
// Sources, by prefix of the rule: M Megatron-LM @d98e8a64dd training/arguments.py,
// core/transformer/transformer_config.py, core/parallel_state.py,
// core/pipeline_parallel/schedules.py; T torchtitan @b5bcd76c6 distributed/parallel_dims.py,
// distributed/pipeline_parallel.py, models/common/decoder.py, components/loss.py; D DeepSpeed
// @edaa72212 runtime/config.py, runtime/pipe/engine.py, moe/layer.py; N nanotron @67c5ebb6
// trainer.py, and @2411b022 config/config.py, parallel/pipeline_parallel/engine.py; G holds for
// every runtime by arithmetic.
#include "cost_model/legality/legality.hpp"

#include <vector>

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

using enum Field;

constexpr Rule table[] = {
    // By the question alone.
    {"M-positions", real, sequence_length, set_of({}), positions},
    {"N-experts", nanotron, ep, set_of({}), nanotron_dense},
    {"M-optimizer", megatron, optimizer, set_of({}), megatron_optimizer},
    {"G-precision", all, precision, set_of({}), number_format},
    {"G-fp8", ddp | deepspeed | paper | engine | nanotron, precision, set_of({}), no_fp8},
    {"G-nvfp4", all & ~megatron, precision, set_of({}), no_nvfp4},
    {"M-fp8-recipe", megatron, precision, set_of({}), recipe_of_gpu},
    {"M-fp8-attention", megatron, precision, set_of({}), eight_bit_attention},
    {"M-dispatcher", megatron, ep, set_of({}), dispatcher_needs_experts},
    {"T-gathered-format", fsdp2, precision, set_of({}), gathers_what_it_computes},
    {"Z-precision", engine, precision, set_of({}), engine_precision},
    {"Z-optimizer", engine, optimizer, set_of({}), engine_optimizer},
    {"Z-model", engine, model, set_of({}), engine_model},
    {"M-mtp", megatron, pp, set_of({}), mtp_modules},

    // Once the micro-batch is chosen.
    {"G-magnitude", all, sequence_length, set_of({micro_batch}), magnitude},

    // Once tp is chosen.
    {"M-heads", real, tp, set_of({tp}), heads},
    {"M-kv-heads", megatron, tp, set_of({tp}), kv_heads_or_replicas},
    {"T-kv-heads", fsdp2 | deepspeed | engine | nanotron, tp, set_of({tp}), kv_heads},
    {"M-hidden-width", megatron | fsdp2 | nanotron, tp, set_of({tp}), hidden_width},
    {"M-mlp-width", real, tp, set_of({tp}), mlp_width},

    // Once cp is chosen.
    {"M-context", megatron | fsdp2, cp, set_of({cp}), context_halves},
    {"M-context-heads", megatron, cp, set_of({tp, cp}), all_to_all_heads},
    {"D-context", deepspeed | paper, cp, set_of({cp}), context_heads},
    {"N-context", nanotron, cp, set_of({cp}), no_context},

    // Once pp is chosen.
    {"G-world", all, pp, set_of({tp, cp, pp}), world},
    {"D-context-kv", deepspeed, cp, set_of({tp, cp, pp}), context_kv_heads},
    {"T-tied", fsdp2, pp, set_of({pp}), no_tied_pipeline},
    {"D-contiguous", deepspeed, pp, set_of({pp}), deepspeed_contiguous},
    {"G-batch", all, global_batch, set_of({micro_batch, tp, cp, pp}), batch},

    // Once ep is chosen.
    {"G-data-parallel-only", ddp, tp, set_of({tp, cp, pp, ep}), data_parallel_only},
    {"M-experts", all, ep, set_of({ep}), experts},

    // Once etp is chosen.
    {"G-experts", all, ep, set_of({ep, etp}), dense_only},
    {"M-expert-grid", megatron | deepspeed | paper, ep, set_of({pp, ep, etp}), expert_grid},
    {"T-etp", fsdp2 | deepspeed, etp, set_of({etp}), no_expert_tensor_parallel},
    {"M-expert-width", megatron, etp, set_of({etp}), expert_width},

    {"Z-grid", engine, cp, set_of({cp, ep, etp}), engine_grid},

    // Once vpp is chosen.
    {"G-layers", all, pp, set_of({pp, vpp}), enough_layers},

    {"M-expert-overlap", megatron, ep, set_of({pp, ep, vpp}), expert_overlap},

    // Once sequence parallelism is chosen.
    {"G-sequence-parallel", megatron | fsdp2 | paper | nanotron, sequence_parallel,
     set_of({tp, sequence_parallel}), sequence_parallel_needs_tp},
    {"G-no-sequence-parallel", ddp | deepspeed | engine, sequence_parallel,
     set_of({sequence_parallel}), no_sequence_parallel},
    {"M-sequence-rows", megatron | fsdp2 | nanotron, tp, set_of({tp, cp, sequence_parallel}),
     sequence_rows},
    {"M-moe-sequence-parallel", megatron, sequence_parallel, set_of({tp, sequence_parallel}),
     moe_needs_sequence_parallel},
    {"M-tp-overlap", megatron, sequence_parallel, set_of({sequence_parallel}),
     tp_overlap_needs_sequence_parallel},

    // Once the split into stages is chosen.
    {"M-split", all, pp, set_of({pp, vpp, stage_split}), splittable},

    // Once the schedule is chosen.
    {"G-schedule", all, schedule, set_of({pp, schedule}), schedule_known},
    {"G-schedule-pipeline", all, schedule, set_of({pp, schedule}), schedule_needs_pipeline},
    {"G-chunks", all, vpp, set_of({pp, vpp, schedule}), chunks_fit_schedule},
    {"M-interleaved-batch", megatron, global_batch, set_of({micro_batch, tp, cp, pp, schedule}),
     interleaved_groups},
    {"T-micro-batches", fsdp2, global_batch, set_of({micro_batch, tp, cp, pp, schedule}),
     torch_micro_batches},
    {"N-micro-batches", nanotron, global_batch, set_of({micro_batch, tp, cp, pp, schedule}),
     nanotron_micro_batches},
    {"G-dualpipe", all, global_batch, set_of({micro_batch, tp, cp, pp, schedule}), dualpipe_pairs},

    // Once the parts of the loss are chosen.
    {"T-loss-chunks", fsdp2, loss_chunks, set_of({micro_batch, cp, loss_chunks}), loss_in_parts},

    // Once recompute is chosen.
    {"G-recompute", ddp | deepspeed | paper | engine | nanotron, recompute, set_of({recompute}),
     full_recompute_only},
    {"M-recompute-groups", megatron, recompute, set_of({recompute}), groups_need_full_recompute},

    {"M-offloaded-layers", megatron, recompute, set_of({pp, recompute}), offloaded_layers_alone},
    {"Z-checkpoints", engine, recompute, set_of({micro_batch, tp, recompute}), engine_checkpoints},

    // Once the modules to recompute are chosen.
    {"M-recompute-modules", megatron, recompute_modules, set_of({recompute, recompute_modules}),
     modules_of_model},

    // Once ZeRO is chosen.
    {"T-stage", fsdp2, zero, set_of({zero}), fsdp_always_shards},
    {"G-ddp-stage", ddp, zero, set_of({zero}), ddp_never_shards},
    {"N-stage", nanotron, zero, set_of({zero}), nanotron_stage},
    {"D-pipeline-stage", deepspeed, zero, set_of({pp, zero}), deepspeed_pipeline_stage},
    {"D-expert-stage", deepspeed, zero, set_of({ep, zero}), deepspeed_experts_stage},
    {"D-accumulation", deepspeed, zero, set_of({zero}), deepspeed_accumulation},
    {"M-fsdp-optimizer", megatron, optimizer, set_of({zero}), megatron_fsdp_optimizer},
    {"M-8-bit-parameters", megatron, zero, set_of({zero}), eight_bit_parameters},
    {"D-secondary", deepspeed, knobs, set_of({tp, cp, pp, zero}), secondary_divides},

    // Once offload is chosen.
    {"G-offload", all, offload, set_of({zero, offload}), offload_known},
    {"M-precision-aware-adam", megatron, optimizer, set_of({offload}), precision_aware_needs_adam},
    {"M-precision-aware-stage", megatron, zero, set_of({zero, offload}),
     precision_aware_needs_sharding},

    // Once hsdp is chosen.
    {"T-expert-group", fsdp2, ep, set_of({tp, cp, pp, ep, hsdp}), experts_in_shard_group},
    {"G-hybrid-divides", megatron | fsdp2 | deepspeed, hsdp, set_of({tp, cp, pp, hsdp}),
     hybrid_shards},
    {"T-expert-rows", fsdp2, ep, set_of({tp, cp, pp, ep, hsdp}), expert_rows_divide},
    {"G-hybrid", ddp | paper | engine | nanotron, hsdp, set_of({hsdp}), no_hybrid},
    {"D-hybrid-offload", deepspeed, offload, set_of({offload, hsdp}), no_offload_in_hybrid},
    {"G-hybrid-stage", megatron | fsdp2 | deepspeed, hsdp, set_of({hsdp, zero}),
     hybrid_needs_sharding},

    // Once the knobs are chosen.
    {"M-overlap", megatron, knobs, set_of({zero, knobs}), overlap_needs_sharding},
    {"M-overlap-gradients", megatron, knobs, set_of({zero, knobs}), overlap_needs_gradients},
};

}  // namespace

std::span<const Rule> rules() {
  return table;
}

namespace {

// The rules of each runtime by depth, in the order of the table.
using RulesByDepth = std::array<std::vector<const Rule*>, choice_order.size() + 1>;

std::array<RulesByDepth, names<Runtime>().size()> sorted_rules() {
  std::array<RulesByDepth, names<Runtime>().size()> sorted;
  for (const Rule& rule : table) {
    for (std::size_t runtime = 0; runtime < sorted.size(); ++runtime) {
      if ((rule.runtimes >> runtime & 1U) != 0) sorted[runtime][depth(rule)].push_back(&rule);
    }
  }
  return sorted;
}

}  // namespace

const Rule* first_broken(const Problem& problem, std::size_t wanted) {
  static const auto sorted = sorted_rules();
  const RulesByDepth& own = sorted[static_cast<std::size_t>(problem.runtime.kind)];
  for (const Rule* rule : own[wanted]) {
    if (rule->broken(problem)) return rule;
  }
  return nullptr;
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
