// What is the ZeRO paper's arithmetic? Front door: paper_code.
#include "cost_model/runtime/paper/code.hpp"

#include "cost_model/program/fold.hpp"
#include "cost_model/runtime/paper/stage.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"
#include "cost_model/runtime/usual.hpp"

namespace zeroplan {
namespace {

StateRecipe states(const Problem& p) {
  StateRecipe recipe = textbook_recipe(p);
  recipe.optimizer_bytes = p.runtime.zero_paper.optimizer_bytes;
  return recipe;
}

std::vector<Workspace> no_workspaces(const Problem&, const WeightInventory&, const Stage&) {
  return {};
}

// Everything that can hide hides.
Behind replicas(const Problem&, const CollectiveLoad& load) {
  return load.during == During::step ? Behind::last_backward : Behind::pass;
}

unsigned schedules(const RuntimeSpec&) {
  return every_schedule;
}

std::vector<std::string> assumptions(const Problem&) {
  return {"the ZeRO paper's arithmetic: no buffers, workspaces, fragmentation or context"};
}

Sources sources(const Problem&) {
  return {"ZeRO (arXiv 1910.02054) sections 3.1 and 5: 2 + 2 + K bytes a parameter",
          "ZeRO (arXiv 1910.02054) section 3.2: 12 h b s elements a layer", "none",
          "ZeRO (arXiv 1910.02054) section 7"};
}

}  // namespace

constexpr RuntimeCode paper_code{
    .name = "zero-paper",
    .counts_only = true,
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
    .workspaces = no_workspaces,
    .context = lazy_context,
    .stage = from_weights<paper_stage>,
    .startup = plain_startup,
    .allocator = usual_allocator,
    .peak_bytes = nullptr,
    .step_calls = folded_calls<paper_stage>,
    .block = paper_block,
    .update_calls = paper_update_calls,
    .sums_blocks = false,
    .peaks_at_start = false,
    .on_host = gradients_on_host,
    .activations_on_host = none_on_host,
    .moved_to_host = nothing_moved,
    .kernels = plain_kernels,
    .interleaving = even_rounds,
    .sends_block = sends_blocks_in_one_chunk,
    .replicas_behind = replicas,
    .context_behind = waits,
    .experts_behind = waits,
    .sharding_copies = no_sharding_copies,
    .update = updates_plainly,
    .rules = &paper_rules,
    .schedules = schedules,
    .choices = data_parallel_choices,
    .layer_choices = no_layer_choices,
    .knobs = no_knobs,
    .attention = flash_attention,
    .take_layout = takes_nothing,
    .assumptions = assumptions,
    .memory_band = MemoryBand{.activations = 0.3},
    .step_band = unmeasured_step_band,
    .sources = sources,
};

}  // namespace zeroplan
