// What does nanotron refuse? Front door: nanotron_rules.
//
// Sources: nanotron @67c5ebb6 trainer.py, and @2411b022 config/config.py, models/qwen.py,
// optim/gradient_accumulator.py, parallel/pipeline_parallel/engine.py.
#include "cost_model/runtime/nanotron/code.hpp"

#include "cost_model/legality/shared_rules.hpp"
#include "cost_model/runtime/nanotron/layer.hpp"

namespace zeroplan {
namespace {

using namespace legality;  // NOLINT: the rows below name what is in it
using enum Field;

Reason nanotron_dense(const Problem& p) {
  return because(p.model.moe || p.model.attention.mla,
                 "nanotron with experts or latent attention is not modelled by this version");
}

Reason no_context(const Problem& p) {
  return because(p.layout.cp > 1, "{} has no context parallelism", runtime_name(p));
}

Reason nanotron_micro_batches(const Problem& p) {
  const std::int64_t m = micro_batches(p);
  const std::int64_t least = p.layout.pp - 1;
  return because(p.layout.schedule == Schedule::one_f_one_b && m < least,
                 "{} micro-batches are fewer than the {} of nanotron's 1F1B over pp {}", m, least,
                 p.layout.pp);
}

Reason nanotron_stage(const Problem& p) {
  return because(p.layout.zero > ZeroStage::optimizer,
                 "nanotron divides the optimizer at most: ZeRO 0 or 1");
}

// Qwen2Model.forward reads position ids, which a later stage does not have.
Reason nanotron_pipeline(const Problem& p) {
  return because(
      runs_qwen_class(p) && p.layout.pp > 1,
      "nanotron of 2025-06 cannot run Qwen2Config in a pipeline (--set version=2024-12)");
}

// It wraps the model in DDP with ZeRO too, whose hook then raises NotImplementedError.
Reason nanotron_divided_replicas(const Problem& p) {
  return because(runs_qwen_class(p) && p.layout.zero != ZeroStage::none && p.layout.dp > 1,
                 "nanotron of 2025-06 cannot run ZeRO 1 over replicas: --zero 0, or --set "
                 "version=2024-12");
}

Reason nanotron_z_loss(const Problem& p) {
  return because(p.runtime.nanotron.z_loss && !runs_qwen_class(p),
                 "z_loss_enabled is of nanotron 2025-06: --set version=2025-06");
}

constexpr Rule rows[] = {
    {"N-z-loss", knobs, set_of({}), nanotron_z_loss},
    rules::positions,
    rules::no_linear_attention,
    rules::no_expert_latents,
    {"N-experts", ep, set_of({}), nanotron_dense},
    rules::number_format,
    rules::no_fp8,
    rules::magnitude,
    rules::heads,
    rules::kv_heads,
    rules::hidden_width,
    rules::mlp_width,
    {"N-context", cp, set_of({cp}), no_context},
    {"N-pipeline", pp, set_of({pp}), nanotron_pipeline},
    rules::world,
    rules::batch,
    rules::experts,
    rules::dense_only,
    rules::enough_layers,
    rules::sequence_parallel_needs_tp,
    rules::sequence_rows,
    rules::splittable,
    rules::schedule_known,
    rules::schedule_needs_pipeline,
    rules::chunks_fit_schedule,
    {"N-micro-batches", global_batch, set_of({micro_batch, tp, cp, pp, schedule}),
     nanotron_micro_batches},
    rules::dualpipe_pairs,
    rules::full_recompute_only,
    {"N-stage", zero, set_of({zero}), nanotron_stage},
    {"N-replicas", zero, set_of({tp, cp, pp, zero}), nanotron_divided_replicas},
    rules::no_offload,
    rules::no_hybrid,
};

}  // namespace

constexpr RuleBook nanotron_rules(rows);

}  // namespace zeroplan
