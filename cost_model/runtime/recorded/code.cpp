// What is a recorded step's runtime? Front doors: recorded_code, recorded_runtime.
#include "cost_model/runtime/recorded/code.hpp"

#include <fmt/format.h>

#include "cost_model/program/fold.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"
#include "cost_model/runtime/usual.hpp"

namespace zeroplan {
namespace {

const RecordedProgram& record_of(const Problem& p) {
  return *p.runtime.recorded;
}

StageProgram stage(const Problem& problem, const WeightInventory& inventory, const Stage& own) {
  StageProgram program = program_of(record_of(problem));
  add_resident(program, "cuBLAS workspaces", workspace(problem, inventory, own),
               Category::workspace);
  return program;
}

AllocatorConfig segments(const Problem& problem) {
  return {.expandable_segments = record_of(problem).expandable_segments};
}

ModelStates states(const Problem& problem) {
  return states_of(record_of(problem));
}

// A recipe of no meaning: the record has the states themselves.
StateRecipe no_recipe(const Problem&) {
  return {};
}

// No block by itself: the blocks of a record are micro-batches.
Block no_block(const Problem&, const WeightInventory&, BlockKind, LayerKind, RepeatSet) {
  return {};
}

unsigned schedules(const RuntimeSpec&) {
  return set_of_schedules({Schedule::one_f_one_b});
}

constexpr Choices choices{
    .stages = every_zero_stage, .every_stage = every_zero_stage, .offloads = no_offloads};

std::vector<std::string> assumptions(const Problem& p) {
  const RecordedProgram& record = record_of(p);
  return {fmt::format("recorded of {}, as rank {} of {}: its layout is fixed, and every rank does "
                      "as much",
                      record.runtime, record.rank, p.cluster.gpus),
          "what comes before the first step, and loading a checkpoint, was not recorded",
          "kernels run one after another without gaps; what travels on a stream of its own does so "
          "beside its pass; the step may be 50 % off, as no measured run stands beside a record"};
}

// The band that `assumptions` tells.
StepBand step_band(const Problem&) {
  constexpr double assumed = 0.5;
  return {assumed, true};
}

Sources sources(const Problem&) {
  constexpr std::string_view record = "the record (validator/pytorch/README.md)";
  return {record, record, record, record};
}

}  // namespace

RuntimeSpec recorded_runtime(std::shared_ptr<const RecordedProgram> recorded) {
  // The settings of no other runtime change anything; zeroplan's engine exports to no format.
  return {.kind = Runtime::zeroplan, .other = &recorded_code, .recorded = std::move(recorded)};
}

constexpr RuntimeCode recorded_code{
    .name = "recorded",
    .counts_only = false,
    .local_layers = own_layers,
    .transformers_layers = no_classes,
    .split = even_split,
    .has_split = has_chunks<even_split>,
    .most_chunks = one_layer_a_chunk,
    .repeats_selectively = repeats_no_part,
    .repeated_layers = repeats_all_layers,
    .divides_states = DividesStates::by_stage,
    .states = no_recipe,
    .own_states = states,
    .keeps_gradients = false,
    .vocabulary_unit = unpadded_vocabulary,
    .held_buffers = no_buffers,
    .workspaces = cublas_alone,
    .context = lazy_context,
    .stage = from_weights<stage>,
    .startup = plain_startup,
    .allocator = segments,
    .peak_bytes = nullptr,
    .step_calls = folded_calls<stage>,
    .block = no_block,
    .update_calls = nullptr,
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
    .rules = &recorded_rules,
    .schedules = schedules,
    .choices = choices,
    .layer_choices = no_layer_choices,
    .knobs = no_knobs,
    .attention = flash_attention,
    .take_layout = takes_nothing,
    .assumptions = assumptions,
    .memory_band = traced_band,
    .step_band = step_band,
    .sources = sources,
};

}  // namespace zeroplan
