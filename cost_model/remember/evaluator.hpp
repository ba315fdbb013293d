#pragma once
// What is made once for a model and used for every layout of a question: the weights, and the
// blocks of the step program, remembered by exactly what they depend on.

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cost_model/pipeline/pipeline_clock.hpp"
#include "cost_model/program/in_flight_cache.hpp"
#include "cost_model/program/in_flight_counts.hpp"
#include "cost_model/program/peak_bytes.hpp"
#include "cost_model/question/inputs.hpp"
#include "cost_model/remember/one_question.hpp"
#include "cost_model/remember/recent_layouts.hpp"
#include "cost_model/runtime/megatron/stage.hpp"

namespace zeroplan {

/// Whether the tensors of a step come from PyTorch's caching allocator. Those of the ZeRO paper
/// come from nowhere: it counts what is allocated.
inline bool has_allocator(const Problem& problem) {
  return !code_of(problem).counts_only;
}

/// What all blocks of a rank together depend on.
using BlocksInputs = Inputs<&Layout::tp,
                            &Layout::cp,
                            &Layout::etp,
                            &Layout::micro_batch,
                            &Layout::sequence_parallel,
                            &Layout::tp_overlap,
                            &Layout::recompute,
                            &Layout::recompute_modules,
                            &TrainingSpec::sequence_length,
                            &TrainingSpec::precision,
                            &TrainingSpec::attention>;

class PlanPoint;
class LayoutPieces;

/// What is remembered for one question: whatever is asked about another one throws std::logic_error
/// (cost_model/remember/one_question.hpp). Not for use by several threads at once.
class Evaluator : private MegatronBlockSource {
 public:
  explicit Evaluator(Question question)
      : only_(std::move(question)),
        weights_(weight_inventory(only_.model())),
        times_(weights_, only_) {}
  explicit Evaluator(const Problem& problem) : Evaluator(question_of(problem)) {}
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  const WeightInventory& weights() const { return weights_; }

  /// The Megatron-Core blocks of this problem, made at the first call with what they depend on.
  const MegatronBlocks& blocks(const Problem& problem) const;
  /// Megatron-Core's layers of a problem that differs in its layout alone from one asked about.
  ByKind<MegatronLayer> layers_of_layout(const Problem& problem) const {
    return known_blocks_.layers(problem);
  }

  /// What the blocks of the problem's runtime take. Valid until the next call.
  BlockTimes block_times(const Problem& problem) const {
    require_same(only_, problem);
    return times_.times(problem);
  }
  /// What blocks take of a problem that differs in its layout alone from one that was asked about.
  BlockTimes block_times_of_layout(const Problem& problem) const { return times_.times(problem); }

  /// What update_collectives finds, of FSDP2 by remembered pieces.
  std::vector<CollectiveLoad> update_loads(const Problem& problem, const Stage& stage) const;

  /// What is known of this layout, or shared with others like it
  /// (cost_model/remember/layout_pieces.hpp).
  LayoutPieces pieces(const Problem& problem) const;
  /// Of a problem that differs in its layout alone from one that was asked about.
  LayoutPieces pieces_of_layout(const Problem& problem) const;

  /// Forgets states and blocks where many are remembered, so that memory stays bounded in a search.
  void trim() const;

  /// The step program of one pipeline stage.
  StageProgram stage_program(const Problem& problem, const Stage& stage) const;

  /// The bytes of the highest moment that fold_step finds in a step program, by remembered sums; of
  /// rank `rank`, which holds `stage` with `states`. Empty where only the fold tells.
  std::optional<Bytes> highest_of_step(const Problem& problem,
                                       const Stage& stage,
                                       std::int64_t rank,
                                       const ModelStates& states) const;

  /// What comes before the first steady step of a stage.
  Startup startup(const Problem& problem, const Stage& stage, const StageProgram& program) const;

 private:
  friend class PlanPoint;
  friend class LayoutPieces;

  const MegatronBlocks& find_or_make(const Problem& problem) const override;
  PeakBytes* peak_bytes(const Problem& problem) const;  // null where the runtime has none

  mutable OnlyFor only_;
  WeightInventory weights_;
  mutable std::unordered_map<Numbers<14>, MegatronBlocks, NumbersHash> blocks_;
  mutable MegatronBlockCache known_blocks_;
  mutable std::unique_ptr<PeakBytes> peak_bytes_;  // where the runtime has its own
  mutable InFlightCache in_flight_;                // where it has none
  mutable BlockClock times_;
  mutable RecentLayouts pieces_;
  mutable std::map<std::vector<std::int64_t>, InFlightCounts> counts_;
  mutable std::unordered_map<StateKey, RankStates, NumbersHash> shares_;
  mutable std::size_t updates_ = 0;  // known with the shares
  mutable PipelineClock clock_;
  // The passes of ranks, while they are put together.
  mutable std::tuple<PassesOfRanks<double>, PassesOfRanks<Lanes>> passes_;
};

}  // namespace zeroplan
