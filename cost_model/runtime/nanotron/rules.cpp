// What does nanotron refuse? Front door: nanotron_rules.
//
// Sources: nanotron @67c5ebb6 trainer.py, and @2411b022 config/config.py,
// parallel/pipeline_parallel/engine.py.
#include "cost_model/runtime/nanotron/code.hpp"

#include "cost_model/legality/shared_rules.hpp"

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

constexpr Rule rows[] = {
    rules::positions,
    {"N-experts", ep, set_of({}), nanotron_dense},
    rules::number_format,
    rules::no_fp8,
    rules::magnitude,
    rules::heads,
    rules::kv_heads,
    rules::hidden_width,
    rules::mlp_width,
    {"N-context", cp, set_of({cp}), no_context},
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
    rules::no_offload,
    rules::no_hybrid,
};

}  // namespace

constexpr RuleBook nanotron_rules(rows);

}  // namespace zeroplan
