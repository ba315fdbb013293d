// What does DDP refuse? Front door: ddp_rules.
#include "cost_model/runtime/ddp/code.hpp"

#include "cost_model/legality/shared_rules.hpp"
#include "cost_model/runtime/pytorch_layers/attention_classes.hpp"

namespace zeroplan {
namespace {

using namespace legality;  // NOLINT: the rows below name what is in it
using enum Field;

Reason data_parallel_only(const Problem& p) {
  const Layout& l = p.layout;
  return because(l.tp * l.pp * l.cp * l.ep > 1, "{} is data parallel only", runtime_name(p));
}

Reason ddp_never_shards(const Problem& p) {
  return because(p.layout.zero != ZeroStage::none, "ddp shards nothing: ZeRO 0");
}

constexpr Rule rows[] = {
    rules::positions,
    rules::no_expert_latents,
    rules::number_format,
    rules::no_fp8,
    rules::flash_attention,
    rules::magnitude,
    rules::heads,
    rules::mlp_width,
    rules::world,
    rules::linear_attention,
    rules::batch,
    {"G-data-parallel-only", tp, set_of({tp, cp, pp, ep}), data_parallel_only},
    rules::experts,
    rules::dense_only,
    rules::enough_layers,
    rules::no_sequence_parallel,
    rules::splittable,
    rules::schedule_known,
    rules::schedule_needs_pipeline,
    rules::chunks_fit_schedule,
    rules::dualpipe_pairs,
    rules::full_recompute_only,
    {"G-ddp-stage", zero, set_of({zero}), ddp_never_shards},
    rules::no_offload,
    rules::no_hybrid,
};

}  // namespace

constexpr RuleBook ddp_rules(rows);

}  // namespace zeroplan
