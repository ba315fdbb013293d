#pragma once
// What is made once for a model and used for every layout of a question: the weights, and the
// blocks of the step program, remembered by exactly what they depend on.

#include <map>
#include <unordered_map>
#include <vector>

#include "cost_model/memory/allocator.hpp"
#include "cost_model/program/ddp/stage.hpp"
#include "cost_model/program/deepspeed/megatron_stage.hpp"
#include "cost_model/program/deepspeed/stage.hpp"
#include "cost_model/program/eager/chain.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/program/fsdp2/recipe.hpp"
#include "cost_model/program/fsdp2/stage.hpp"
#include "cost_model/program/megatron/stage.hpp"
#include "cost_model/program/nanotron/stage.hpp"
#include "cost_model/program/zeroplan/stage.hpp"
#include "cost_model/shared_pieces.hpp"
#include "cost_model/step/pipeline.hpp"

namespace zeroplan {

/// Whether the problem's step is a program that can be played; other memory is estimated in closed
/// form.
inline bool has_step_program(const Problem& problem) {
  switch (problem.runtime.kind) {
    case Runtime::megatron:
    case Runtime::fsdp2:
    case Runtime::ddp:
    case Runtime::deepspeed:
    case Runtime::nanotron:
    case Runtime::zeroplan:
      return true;
    case Runtime::zero_paper:
      break;
  }
  return false;
}

/// The allocator's settings in this problem's runtime; its own default where none is known.
inline AllocatorConfig allocator_config(const Problem& problem) {
  switch (problem.runtime.kind) {
    case Runtime::megatron:
      return {.expandable_segments = problem.runtime.megatron.expandable_segments};
    case Runtime::fsdp2:
      return {.expandable_segments = fsdp2_recipe(problem).expandable_segments};
    default:
      return {};
  }
}

using BlockKey = Numbers<10>;

/// For one model, one runtime with its settings, and one GPU. Not for use by several threads at
/// once.
class Remembered {
 public:
  explicit Remembered(const ModelSpec& model) : weights_(weight_inventory(model)) {}

  const WeightInventory& weights() const { return weights_; }

  /// The Megatron-Core blocks of this problem, made at the first call with what they depend on.
  const MegatronBlocks& blocks(const Problem& problem) const;

  /// What they, or the blocks of another runtime, take.
  const BlockTimes& block_times(const Problem& problem) const;

  /// The stages of this problem, and which of them are alike.
  const SharedPieces& pieces(const Problem& problem) const { return pieces_.of(problem); }

  /// The folded passes of stage `index` on Megatron-Core, made at the first call for all layouts
  /// that differ in ZeRO stage, HSDP and offload alone.
  const PassesOfStage& megatron_stage_passes(const Problem& problem, std::size_t index) const;

  /// The bytes of their highest moment, by how many of which chunks the schedule keeps alive
  /// together: the same, many times as fast.
  Bytes megatron_passes_peak(const Problem& problem, std::size_t index) const;

  /// What the passes of stage `index` take, the same for all those layouts.
  const StagePasses& stage_passes(const Problem& problem, std::size_t index) const;

  /// What those three decide of stage `index`: its states, and how they are exchanged and updated.
  const StateShare& share(const Problem& problem, std::size_t index) const;
  const StageUpdate& update(const Problem& problem, std::size_t index) const;

  /// message_seconds of the problem.
  double message(const Problem& problem) const;

  /// When the last pass of each pipeline rank ends. `passes`: those of each rank's chunks, rank by
  /// rank; empty where they are just those of stage_passes. Valid until the next call.
  const std::vector<double>& finished(const Problem& problem,
                                      const std::vector<PassTime>& passes) const;

  /// The step program of one pipeline stage, of a runtime that has one.
  StageProgram stage_program(const Problem& problem, const Stage& stage) const;

  /// What comes before its first steady step.
  Startup startup(const Problem& problem, const Stage& stage, const StageProgram& program) const;

 private:
  const PassProfile& profile(const Problem& problem,
                             std::size_t index,
                             const StageProgram& program) const;
  StateShare& made_share(const Problem& problem, std::size_t index) const;

  WeightInventory weights_;
  mutable std::unordered_map<BlockKey, MegatronBlocks, NumbersHash> blocks_;
  mutable std::unordered_map<Numbers<12>, BlockTimes, NumbersHash> times_;
  mutable RecentPieces pieces_;
  mutable std::map<std::vector<std::int64_t>, PassProfile> profiles_;
  mutable std::unordered_map<StateKey, StateShare, NumbersHash> shares_;
  mutable PipelineClock clock_;
};

}  // namespace zeroplan
