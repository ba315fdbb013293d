#pragma once
// What layouts that differ only in ZeRO stage, HSDP, offload and overlap have in common: a search
// asks about many of them in a row.

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "cost_model/program/footprint.hpp"
#include "cost_model/stages.hpp"
#include "cost_model/state_share.hpp"

namespace zeroplan {

/// Of one pipeline rank: what its passes need above what is resident, and what stays besides the
/// model states.
struct PassesOfStage {
  MemoryBreakdown resident;
  Footprint passes;
};

/// What recompute does not change either.
struct SharedStages {
  Layout layout;  // with recompute and those four at their defaults
  TrainingSpec training;
  std::vector<Stage> stages;
  std::vector<std::size_t> first_alike;  // of each stage, the first of its run of alike neighbours
  std::vector<std::size_t> firsts;       // those of all runs
  // When asked for:
  std::vector<std::optional<Bytes>> buffers;  // Megatron-Core's, of the first of each run
  std::optional<double> message;              // seconds between neighbours of the pipeline

  // Of each stage, when asked for, by ZeRO stage, HSDP and offload. Alike stages share the first's.
  struct Column {
    ZeroStage zero;
    std::int64_t hsdp;
    Offload offload;
    std::vector<StateShare*> shares;
  };
  std::deque<Column> columns;

  /// That of this layout's; nulls where none was asked for.
  Column& column(const Layout& layout);
};

struct SharedPieces {
  Layout layout;  // with those four at their defaults
  std::shared_ptr<SharedStages> of_stages;
  std::vector<std::optional<PassesOfStage>> passes;  // of each stage, when asked for
  std::vector<std::optional<Bytes>> highest;         // of those passes, in bytes

  // When asked for:
  std::vector<std::optional<StagePasses>> times;  // of the first of each run
  std::vector<double> finished;                   // each run, where the update adds nothing

  const std::vector<Stage>& stages() const { return of_stages->stages; }
  const std::vector<std::size_t>& first_alike() const { return of_stages->first_alike; }
  const std::vector<std::size_t>& firsts() const { return of_stages->firsts; }
};

/// The pieces of the last few layouts.
class RecentPieces {
 public:
  RecentPieces() = default;
  RecentPieces(const RecentPieces&) = delete;
  RecentPieces& operator=(const RecentPieces&) = delete;

  /// Those of this problem, kept from one of the last calls or made anew. Valid until `kept` other
  /// layouts were asked about.
  SharedPieces& of(const Problem& problem);

  /// Whether the last call was about this problem.
  bool just_asked(const Problem& problem) const {
    return last_ != nullptr && asked_ == problem.layout &&
           last_->of_stages->training == problem.training;
  }

  void forget_shares();

  static constexpr std::size_t kept = 8;

 private:
  SharedPieces& find(const Problem& problem);
  std::shared_ptr<SharedStages> stages_of(const Problem& problem, const Layout& layout);

  std::deque<SharedPieces> recent_;                          // the latest first
  std::deque<std::shared_ptr<SharedStages>> recent_stages_;  // the same
  // One evaluation asks many times.
  Layout asked_;
  SharedPieces* last_ = nullptr;
};

}  // namespace zeroplan
