#pragma once
// What is made once for a model and used for every layout of a question: the weights, and the
// blocks of the step program, remembered by exactly what they depend on.

#include <deque>
#include <map>
#include <tuple>
#include <utility>
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

/// For one model, one runtime with its settings, and one GPU. Not for use by several threads at
/// once.
class Remembered {
 public:
  explicit Remembered(const ModelSpec& model) : weights_(weight_inventory(model)) {}

  const WeightInventory& weights() const { return weights_; }

  /// The Megatron-Core blocks of this problem, made at the first call with what they depend on.
  const MegatronBlocks& blocks(const Problem& problem) const {
    const Layout& l = problem.layout;
    const TrainingSpec& t = problem.training;
    const Key key{l.tp,
                  l.cp,
                  l.etp,
                  l.micro_batch,
                  l.sequence_parallel,
                  l.recompute,
                  t.sequence_length,
                  t.precision,
                  t.attention};
    const auto [found, added] = blocks_.try_emplace(key);
    if (added) found->second = megatron_blocks(problem);
    return found->second;
  }

  /// simulate_pipeline without slack, or its answer to one of the last few calls if that had the
  /// same passes: layouts that differ in flags alone often do.
  const PipelineTime& pipeline(const Problem& problem,
                               const std::vector<StageTime>& ranks,
                               double message) const {
    std::vector<double> key{static_cast<double>(problem.layout.schedule),
                            static_cast<double>(pipeline_of(problem, 1).group),
                            static_cast<double>(forward_passes(problem)), message};
    for (const StageTime& rank : ranks) {
      for (const PassTime& pass : rank.chunks) {
        key.insert(key.end(), {pass.forward, pass.input_gradient, pass.weight_gradient});
      }
      key.push_back(-1);  // no pass takes that long
    }
    for (const auto& [passes, time] : pipelines_) {
      if (passes == key) return time;
    }
    constexpr std::size_t few = 8;
    if (pipelines_.size() == few) pipelines_.pop_back();
    pipelines_.emplace_front(std::move(key),
                             simulate_pipeline(problem, ranks, message, PipelineDetail::ends));
    return pipelines_.front().second;
  }

  /// The stages of this problem, and which of them are alike.
  const SharedPieces& pieces(const Problem& problem) const { return pieces_.of(problem); }

  /// The folded passes of stage `index` on Megatron-Core, made at the first call for all layouts
  /// that differ in ZeRO stage, HSDP and offload alone.
  const PassesOfStage& megatron_stage_passes(const Problem& problem, std::size_t index) const {
    SharedPieces& shared = pieces_.of(problem);
    std::optional<PassesOfStage>& known = shared.passes[index];
    if (!known) {
      const StageProgram program =
          megatron_passes(problem, weights_, blocks(problem), shared.stages[index]);
      const auto rank = static_cast<std::int64_t>(index);
      known = {sum(program.resident), fold_passes(program, representative_passes(problem, rank))};
    }
    return *known;
  }

  /// The step program of one pipeline stage, of a runtime that has one.
  StageProgram stage_program(const Problem& problem, const Stage& stage) const {
    switch (problem.runtime.kind) {
      case Runtime::fsdp2:
        return fsdp2_stage(problem, weights_, stage);
      case Runtime::ddp:
        return ddp_stage(problem, weights_, stage);
      case Runtime::nanotron:
        return nanotron_stage(problem, weights_, stage);
      case Runtime::zeroplan:
        return zeroplan_stage(problem, weights_, stage);
      case Runtime::deepspeed:
        return deepspeed_program(problem, stage);
      default:
        break;
    }
    return megatron_stage(problem, weights_, blocks(problem), stage);
  }

  /// What comes before its first steady step.
  Startup startup(const Problem& problem, const Stage& stage, const StageProgram& program) const {
    switch (problem.runtime.kind) {
      case Runtime::fsdp2:
        return fsdp2_startup(problem, weights_, stage, program);
      case Runtime::nanotron:
        return nanotron_startup(problem, weights_, stage, program);
      case Runtime::ddp:
      case Runtime::deepspeed:
      case Runtime::zeroplan:
        return plain_startup(program);
      default:
        break;
    }
    return megatron_startup(problem, weights_, stage, program);
  }

 private:
  StageProgram deepspeed_program(const Problem& problem, const Stage& stage) const {
    if (!runs_megatron_layers(problem)) return deepspeed_stage(problem, weights_, stage);
    const Problem early = with_early_layers(problem);
    return megatron_deepspeed_stage(early, weights_, blocks(early), stage);
  }

  using Key = std::tuple<std::int64_t,
                         std::int64_t,
                         std::int64_t,
                         std::int64_t,
                         bool,
                         Recompute,
                         std::int64_t,
                         Precision,
                         AttentionKernel>;
  WeightInventory weights_;
  mutable std::map<Key, MegatronBlocks> blocks_;
  mutable RecentPieces pieces_;
  mutable std::deque<std::pair<std::vector<double>, PipelineTime>> pipelines_;
};

}  // namespace zeroplan
