#pragma once
// What is remembered of one layout: each piece is made when it is first asked for, and found again
// by every layout that shares it.

#include "cost_model/remember/evaluator.hpp"

namespace zeroplan {

class PlanPoint;

/// Pieces of one problem, which must outlive them. Its Exchange may change meanwhile, nothing else.
/// Valid until Evaluator::trim, and until a few layouts that differ in more were recalled.
class LayoutPieces {
 public:
  const Problem& problem() const { return problem_; }
  const Evaluator& evaluator() const { return evaluator_; }

  const std::vector<Stage>& stages() const { return pieces_.list().stages; }
  /// The stage's run of alike neighbours.
  std::size_t run_of(std::size_t stage) const { return pieces_.list().run_of[stage]; }
  /// The first stage of each run.
  const std::vector<std::size_t>& firsts() const { return pieces_.list().firsts; }
  std::size_t runs() const { return firsts().size(); }
  std::int64_t length_of_run(std::size_t run) const {
    const std::size_t next = run + 1 < runs() ? firsts()[run + 1] : stages().size();
    return static_cast<std::int64_t>(next - firsts()[run]);
  }

  /// The folded passes of a stage on Megatron-Core: the same however states are exchanged.
  const PassesOfStage& megatron_passes(std::size_t stage) const;

  /// The bytes of the passes' highest moment in a run's first stage on Megatron-Core, by how many
  /// of which chunks the schedule keeps alive together: as megatron_passes, many times as fast.
  Bytes megatron_peak(std::size_t run) const {
    const std::optional<Bytes>& known = pieces_.highest[run];
    return known ? *known : find_megatron_peak(run);
  }

  /// The same with what Megatron-FSDP gathers and reduces beside the passes.
  Bytes megatron_peak(std::size_t run, const FsdpBuckets& buckets) const;

  /// No more than megatron_peak, with `buckets` where they are Megatron-FSDP's, however many of the
  /// layers repeat whole. None where it is not known.
  Bytes least_megatron_peak(std::size_t run, const FsdpBuckets* buckets) const;

  /// The bytes that the last passes on Megatron-Core leave to the optimizer's step
  /// (megatron_kept_inputs).
  Bytes megatron_kept(std::size_t run) const {
    const std::optional<Bytes>& known = pieces_.kept[run];
    return known ? *known : find_megatron_kept(run);
  }

  /// The bytes of Megatron-Core's buffers, which stay besides the model states.
  Bytes megatron_buffer_bytes(std::size_t run) const {
    const std::optional<Bytes>& known = shared_.buffers[run];
    return known ? *known : find_megatron_buffer_bytes(run);
  }

  /// What the passes of each stage of a run take, the same however states are exchanged.
  const StagePasses& passes(std::size_t run) const { return passes()[run]; }
  std::span<const StagePasses> passes() const {
    if (pieces_.times.empty()) find_passes();
    return {pieces_.times.data(), pieces_.times.size()};
  }

  /// The states as they are exchanged now.
  PlanPoint point() const;

  /// When the last pass of each run of pipeline ranks ends, in seconds, where no update adds to the
  /// passes.
  const std::vector<double>& finished() const {
    return pieces_.finished.empty() ? find_finished() : pieces_.finished;
  }
  /// When the last pass of each run ends, in seconds, where an update adds these parts to the
  /// passes of each. Several timings cost little more than one. Valid until the next call.
  template <class Seconds>
  const std::vector<Seconds>& finished(std::span<const DirectionsOf<Seconds>> added) const;

  /// What waiting for the slowest of many GPUs adds to the step, as a part of it.
  double straggling() const { return shared_.straggling ? *shared_.straggling : find_straggling(); }

 private:
  friend class PlanPoint;
  friend class Evaluator;
  LayoutPieces(const Problem& problem, const Evaluator& evaluator, PassCache& pieces)
      : problem_(problem), evaluator_(evaluator), pieces_(pieces), shared_(*pieces.of_stages) {}

  Bytes find_megatron_peak(std::size_t run) const;
  Bytes find_megatron_kept(std::size_t run) const;
  Bytes find_megatron_buffer_bytes(std::size_t run) const;
  void find_passes() const;
  void find_states(std::size_t run, ShardedStages::States& states) const;
  const std::vector<double>& find_finished() const;
  void keep_if_alone(std::span<const DirectionsOf<Lanes>> added,
                     const std::vector<Lanes>& ends) const;
  double find_straggling() const;
  const InFlightCounts& profile(std::size_t run) const;
  const ChunkBytes& chunk_bytes(std::size_t kind) const;
  const MegatronBlocks& blocks() const;
  Bytes boundary() const;
  double message() const;

  const Problem& problem_;
  const Evaluator& evaluator_;
  PassCache& pieces_;
  StageCache& shared_;
  mutable const MegatronBlocks* blocks_ = nullptr;  // before they are asked for
};

/// A recalled layout with one exchange of its states, found once for all that is asked of it: by
/// runs of alike stages. No longer valid than the layout's pieces. What was not asked for before
/// the problem's exchange changed cannot be found any more.
class PlanPoint {
 public:
  const LayoutPieces& layout() const { return known_; }

  /// The states of a stage of the run, and how they are exchanged and updated.
  const RankStates& share(std::size_t run) const { return *states(run).share; }
  const RankStates::Sums& sums(std::size_t run) const { return states(run).sums; }
  /// What the step of the first stage of a run needs at least: Evaluator::highest_of_step is never
  /// below it, and costs many times as much.
  LeastBytes least_of_step(std::size_t run) const;
  const StageUpdate& update(std::size_t run) const;
  /// What Megatron-FSDP gathers and reduces beside the passes.
  const FsdpBuckets& buckets(std::size_t run) const;
  /// Of those what any sharding group has that is no wider.
  const FsdpBuckets& least_buckets(std::size_t run) const;
  const UpdateLoads& loads(std::size_t run) const {
    const UpdateLoads* known = sharding_.loads[overlap_].find(contents_[run]);
    return known != nullptr ? *known : find_loads(run);
  }
  /// Whether the loads of any run make passes longer.
  bool adds_to_passes() const {
    const std::size_t runs = known_.runs();
    for (std::size_t run = 0; run < runs; ++run) {
      if (loads(run).in_passes) return true;
    }
    return false;
  }

 private:
  friend class LayoutPieces;
  PlanPoint(const LayoutPieces& known, ShardedStages& sharding, Overlap overlap)
      : known_(known),
        sharding_(sharding),
        contents_(known.shared_.contents.data()),
        overlap_(static_cast<std::size_t>(overlap)) {}

  const ShardedStages::States& states(std::size_t run) const {
    ShardedStages::States& known = sharding_.states[contents_[run]];
    if (known.share == nullptr) known_.find_states(run, known);
    return known;
  }
  const UpdateLoads& find_loads(std::size_t run) const;

  const LayoutPieces& known_;
  ShardedStages& sharding_;
  const std::size_t* contents_;  // of each run
  std::size_t overlap_;
};

inline PlanPoint LayoutPieces::point() const {
  return {*this, shared_.shardings->find_or_make(problem_.layout), problem_.layout.overlap};
}

inline LayoutPieces Evaluator::pieces(const Problem& problem) const {
  require_same(only_, problem);
  return pieces_of_layout(problem);
}

inline LayoutPieces Evaluator::pieces_of_layout(const Problem& problem) const {
  return {problem, *this, pieces_.find_or_make(problem)};
}

}  // namespace zeroplan
