// What is the toy runtime? Front door: toy_code.
#include "tests/cost_model/runtime/toy/toy.hpp"

#include "cost_model/kernel/layer_modules.hpp"
#include "cost_model/legality/shared_rules.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/program/layer_shape.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"
#include "cost_model/runtime/replica_calls.hpp"
#include "cost_model/runtime/usual.hpp"

namespace zeroplan::tests {
namespace {

using legality::because;
using legality::Reason;

Reason whole_layers(const Problem& p) {
  return because(p.layout.tp * p.layout.cp > 1, "toy divides no layer");
}

constexpr Rule rows[] = {
    rules::number_format,
    rules::magnitude,
    {"Y-layers", Field::tp, set_of({Field::tp, Field::cp}), whole_layers},
    rules::world,
    rules::batch,
    rules::dense_only,
    rules::enough_layers,
    rules::no_sequence_parallel,
    rules::splittable,
    rules::schedule_known,
    rules::schedule_needs_pipeline,
    rules::chunks_fit_schedule,
    rules::full_recompute_only,
    rules::no_offload,
    rules::no_hybrid,
};
constexpr RuleBook book(rows);

Block layer(const LayerShape& s, bool again) {
  BlockWriter w;
  const auto [attention, feed_forward] = layer_modules(s.problem, LayerKind::dense);
  const auto run_all = [&] {
    run(w, attention);
    run(w, feed_forward);
  };
  const Tensor kept = w.save("four residuals", 4 * s.residual());
  run_all();
  w.begin_backward();
  if (again) run_all();
  run_backward(w, feed_forward);
  run_backward(w, attention);
  w.free(kept);
  return w.finish();
}

StageProgram stage(const Problem& problem, const WeightInventory& inventory, const Stage& own) {
  StageProgram program;
  for (const LayerRange& range : own.chunks) {
    ChunkProgram& chunk = program.chunks.emplace_back();
    append(chunk.runs,
           folded(layer(layer_shape(problem), problem.layout.recompute == Recompute::full)),
           range.last - range.first);
  }
  const ModelStates states = model_states(problem, inventory, own);
  add_resident(program, "parameters", states.parameters, Category::parameters);
  add_resident(program, "gradients", states.gradients, Category::gradients);
  add_resident(program, "master parameters", states.master_parameters, Category::master_parameters);
  add_resident(program, "optimizer states", states.optimizer_states, Category::optimizer_states);
  return program;
}

Block block(
    const Problem& problem, const WeightInventory&, BlockKind kind, LayerKind, RepeatSet repeated) {
  return kind == BlockKind::layer ? layer(layer_shape(problem), repeated != 0) : Block{};
}

std::vector<Call> update_calls(const Problem& problem,
                               const WeightInventory& inventory,
                               const Stage& own) {
  return replica_calls(problem, inventory, own, zero_recipe(problem));
}

unsigned schedules(const RuntimeSpec&) {
  return set_of_schedules({Schedule::one_f_one_b});
}

constexpr ZeroStage stages[] = {ZeroStage::none, ZeroStage::optimizer};
constexpr Choices choices{.divides_model = true,
                          .tries_pipeline = true,
                          .stages = optimizer_stage,
                          .every_stage = stages,
                          .offloads = no_offloads};

Sources sources(const Problem&) {
  return {"toy: states", "toy: program", "toy: buffers", "toy: communication"};
}

std::vector<std::string> assumptions(const Problem&) {
  return {"toy exists"};
}

}  // namespace

constexpr RuntimeCode toy_code{
    .name = "toy",
    .counts_only = false,
    .local_layers = own_layers,
    .transformers_layers = no_classes,
    .split = even_split,
    .has_split = has_chunks<even_split>,
    .most_chunks = one_layer_a_chunk,
    .repeats_selectively = repeats_no_part,
    .repeated_layers = repeats_all_layers,
    .divides_states = DividesStates::by_stage,
    .states = textbook_recipe,
    .keeps_gradients = false,
    .vocabulary_unit = unpadded_vocabulary,
    .held_buffers = no_buffers,
    .workspaces = cublas_alone,
    .context = lazy_context,
    .stage = from_weights<stage>,
    .startup = plain_startup,
    .allocator = usual_allocator,
    .peak_bytes = nullptr,
    .step_calls = update_calls,
    .block = block,
    .update_calls = update_calls,
    .sums_blocks = false,
    .peaks_at_start = false,
    .on_host = gradients_on_host,
    .activations_on_host = none_on_host,
    .moved_to_host = nothing_moved,
    .kernels = plain_kernels,
    .interleaving = even_rounds,
    .sends_block = sends_blocks_in_one_chunk,
    .replicas_behind = waits,
    .context_behind = waits,
    .experts_behind = waits,
    .sharding_copies = no_sharding_copies,
    .update = updates_plainly,
    .rules = &book,
    .schedules = schedules,
    .choices = choices,
    .layer_choices = no_layer_choices,
    .knobs = no_knobs,
    .attention = flash_attention,
    .take_layout = takes_nothing,
    .assumptions = assumptions,
    .memory_band = unmeasured_band,
    .step_band = unmeasured_step_band,
    .sources = sources,
};

}  // namespace zeroplan::tests
