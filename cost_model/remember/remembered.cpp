// What was made before? Front door: Remembered.
#include "cost_model/remember/remembered.hpp"

#include "cost_model/network/load_list.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/runtime/ddp/stage.hpp"
#include "cost_model/runtime/deepspeed/megatron_stage.hpp"
#include "cost_model/runtime/deepspeed/stage.hpp"
#include "cost_model/runtime/deepspeed/startup.hpp"
#include "cost_model/runtime/fsdp2/recipe.hpp"
#include "cost_model/runtime/fsdp2/stage.hpp"
#include "cost_model/runtime/paper/stage.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"
#include "cost_model/runtime/zeroplan/stage.hpp"

namespace zeroplan {

namespace {

// Blocks: as many as the largest spaces have. Shares: as a few hundred shapes use, some 20 MB.
constexpr std::size_t most_blocks = 12'000;
constexpr std::size_t most_shares = 40'000;

// What a block of a rank depends on.
BlockKey block_key(const Problem& problem) {
  const Layout& l = problem.layout;
  const TrainingSpec& t = problem.training;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  return {l.tp,
          l.cp,
          l.etp,
          l.micro_batch,
          number(l.sequence_parallel),
          number(l.recompute),
          number(l.recompute_modules),
          t.sequence_length,
          number(t.precision),
          number(t.attention)};
}

}  // namespace

AllocatorConfig allocator_config(const Problem& problem) {
  switch (problem.runtime.kind) {
    case Runtime::megatron:
      return {.expandable_segments = problem.runtime.megatron.expandable_segments};
    case Runtime::fsdp2:
      return {.expandable_segments = fsdp2_recipe(problem).expandable_segments};
    case Runtime::ddp:
    case Runtime::deepspeed:
    case Runtime::nanotron:
    case Runtime::zeroplan:
    case Runtime::zero_paper:
      break;
  }
  return {};
}

void Remembered::trim() const {
  if (blocks_.size() > most_blocks) blocks_.clear();
  if (shares_.size() + updates_ <= most_shares) return;
  pieces_.forget_shares();
  shares_.clear();
  updates_ = 0;
}

const MegatronBlocks& Remembered::blocks(const Problem& problem) const {
  question_.require(problem);
  return find_blocks(problem);
}

const MegatronBlocks& Remembered::find_blocks(const Problem& problem) const {
  const auto [found, added] = blocks_.try_emplace(block_key(problem));
  if (added) found->second = known_blocks_.of(problem);
  return found->second;
}

StageProgram Remembered::stage_program(const Problem& problem, const Stage& stage) const {
  question_.require(problem);
  switch (problem.runtime.kind) {
    case Runtime::fsdp2:
      return fsdp2_stage(problem, weights_, stage);
    case Runtime::ddp:
      return ddp_stage(problem, weights_, stage);
    case Runtime::nanotron:
      return nanotron_stage(problem, weights_, stage);
    case Runtime::zeroplan:
      return zeroplan_stage(problem, weights_, stage);
    case Runtime::deepspeed: {
      if (!runs_megatron_layers(problem)) return deepspeed_stage(problem, weights_, stage);
      const Problem early = with_early_layers(problem);
      return megatron_deepspeed_stage(early, weights_, find_blocks(early), stage);
    }
    case Runtime::zero_paper:
      return paper_stage(problem, weights_, stage);
    case Runtime::megatron:
      break;
  }
  return megatron_stage(problem, weights_, find_blocks(problem), stage);
}

std::optional<Bytes> Remembered::highest_of_step(const Problem& problem,
                                                 const Stage& stage,
                                                 std::int64_t rank,
                                                 const ModelStates& states) const {
  question_.require(problem);
  if (problem.runtime.kind == Runtime::fsdp2) return fsdp2_.highest(problem, stage, rank, states);
  if (problem.runtime.kind == Runtime::nanotron) {
    return nanotron_.highest(problem, stage, rank, states);
  }
  // Of the paper's arithmetic the band asks for activations too.
  if (!has_allocator(problem) || problem.layout.schedule > Schedule::interleaved) return {};
  const StageProgram program = stage_program(problem, stage);
  const bool alike = program.chunks.front().first_runs.empty();
  const ProfileOfRank& profile = pass_profiles_.of(
      problem, stage, rank, program, alike ? FirstMicroBatch::alike : FirstMicroBatch::apart);
  const std::optional<PassBytes> passes = profile.passes(program);
  if (!passes) return std::nullopt;
  return highest_bytes(sum(program.resident).allocated(), *passes, forward_bytes(program.step),
                       forward_bytes(program.checkpoint));
}

std::vector<CollectiveLoad> Remembered::update_loads(const Problem& problem,
                                                     const Stage& stage) const {
  if (problem.runtime.kind != Runtime::fsdp2) return update_collectives(problem, weights_, stage);
  LoadList loads(problem);
  loads.add_calls(fsdp2_.update_calls(problem, stage));
  return loads.take();
}

Startup Remembered::startup(const Problem& problem,
                            const Stage& stage,
                            const StageProgram& program) const {
  question_.require(problem);
  switch (problem.runtime.kind) {
    case Runtime::fsdp2:
      return fsdp2_startup(problem, weights_, stage, program);
    case Runtime::nanotron:
      return nanotron_startup(problem, weights_, stage, program);
    case Runtime::deepspeed:
      return deepspeed_startup(problem, weights_, stage, program);
    case Runtime::ddp:
    case Runtime::zeroplan:
    case Runtime::zero_paper:
      return plain_startup(program);
    case Runtime::megatron:
      break;
  }
  return megatron_startup(problem, weights_, stage, program);
}

}  // namespace zeroplan
