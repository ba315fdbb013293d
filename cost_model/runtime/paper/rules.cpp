// What does the ZeRO paper's arithmetic refuse? Front door: paper_rules.
#include "cost_model/runtime/paper/code.hpp"

#include "cost_model/legality/shared_rules.hpp"

namespace zeroplan {
namespace {

using namespace legality;  // NOLINT: the rows below name what is in it
using enum Field;

constexpr Rule rows[] = {
    rules::no_linear_attention,
    rules::no_expert_latents,
    rules::number_format,
    rules::no_fp8,
    rules::magnitude,
    rules::context_heads,
    rules::world,
    rules::batch,
    rules::experts,
    rules::dense_only,
    rules::expert_grid,
    rules::enough_layers,
    rules::sequence_parallel_needs_tp,
    rules::splittable,
    rules::schedule_known,
    rules::schedule_needs_pipeline,
    rules::chunks_fit_schedule,
    rules::dualpipe_pairs,
    rules::full_recompute_only,
    rules::optimizer_offload_only,
    rules::no_hybrid,
};

}  // namespace

constexpr RuleBook paper_rules(rows);

}  // namespace zeroplan
