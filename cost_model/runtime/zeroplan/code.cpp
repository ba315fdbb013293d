// What is zeroplan's engine? Front door: zeroplan_code.
#include "cost_model/runtime/zeroplan/code.hpp"

#include "cost_model/program/fold.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"
#include "cost_model/runtime/usual.hpp"
#include "cost_model/runtime/zeroplan/stage.hpp"

namespace zeroplan {
namespace {

StateRecipe states(const Problem& p) {
  StateRecipe recipe = textbook_recipe(p);
  recipe.padding = Padding::each_unit;
  return recipe;
}

// The engine's own workspace, of one size on every device (validator/engine.cpp).
std::vector<Workspace> of_products(const Problem&, const WeightInventory&, const Stage&) {
  return {{"matrix products", 32_MiB}};
}

// validator/model/layer.cpp: linears that read the same are one; weights' gradients are added, in
// bf16, to what is there.
KernelHabits joined_kernels(const Problem&) {
  return {.fuses_projections = true, .weight_gradient_bytes = 4};
}

constexpr Choices choices() {
  Choices all = data_parallel_choices;
  all.splits_norms = true;
  return all;
}

// validator/zero/divided_unit.cpp: what is gathered ahead, and what travels beside the next pass.
Behind replicas(const Problem& p, const CollectiveLoad& load) {
  const ZeroplanSettings& set = p.runtime.zeroplan;
  if (load.during == During::step) return Behind::nothing;
  const bool beside = load.collective == Collective::all_gather ? set.prefetch : set.overlap_comm;
  return beside ? Behind::pass : Behind::nothing;
}

unsigned schedules(const RuntimeSpec&) {
  return set_of_schedules({Schedule::gpipe, Schedule::one_f_one_b});
}

Sources sources(const Problem&) {
  return {"ZeRO (arXiv 1910.02054) section 3.1, each unit padded until its parts are aligned",
          "validator/model/layer.cpp and ends.cpp, event by event",
          "validator/zero/divided_unit.cpp: a unit's gathered parameters and its bucket",
          "ZeRO (arXiv 1910.02054) section 7"};
}

std::vector<std::string> assumptions(const Problem& p) {
  return notes_of_partition(p, p.runtime.zeroplan.partition_activations);
}

}  // namespace

constexpr RuntimeCode zeroplan_code{
    .name = "zeroplan",
    .counts_only = false,
    .local_layers = own_layers,
    .transformers_layers = no_classes,
    .split = even_split,
    .has_split = has_chunks<even_split>,
    .most_chunks = one_layer_a_chunk,
    .repeats_selectively = repeats_no_part,
    .repeated_layers = repeats_all_layers,
    .divides_states = DividesStates::by_stage,
    .states = states,
    .keeps_gradients = false,
    .vocabulary_unit = unpadded_vocabulary,
    .held_buffers = no_buffers,
    .workspaces = of_products,
    .context = lazy_context,
    .stage = from_weights<zeroplan_stage>,
    .startup = plain_startup,
    .allocator = usual_allocator,
    .peak_bytes = nullptr,
    .step_calls = folded_calls<zeroplan_stage>,
    .block = zeroplan_block,
    .update_calls = nullptr,
    .sums_blocks = false,
    .peaks_at_start = false,
    .on_host = gradients_on_host,
    .activations_on_host = none_on_host,
    .moved_to_host = nothing_moved,
    .kernels = joined_kernels,
    .interleaving = even_rounds,
    .sends_block = sends_blocks_in_one_chunk,
    .replicas_behind = replicas,
    .context_behind = waits,
    .experts_behind = waits,
    .sharding_copies = no_sharding_copies,
    .update = updates_plainly,
    .rules = &zeroplan_rules,
    .schedules = schedules,
    .choices = choices(),
    .layer_choices = no_layer_choices,
    .knobs = no_knobs,
    .attention = flash_attention,
    .take_layout = takes_nothing,
    .assumptions = assumptions,
    .memory_band = unmeasured_band,
    .step_band = unmeasured_step_band,
    .sources = sources,
};

}  // namespace zeroplan
