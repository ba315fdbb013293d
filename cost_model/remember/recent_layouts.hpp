#pragma once
// What layouts that differ only in how they exchange states have in common: a search asks about
// many of them in a row.

#include <boost/container/small_vector.hpp>
#include <list>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "cost_model/program/footprint.hpp"
#include "cost_model/program/in_flight_counts.hpp"
#include "cost_model/question/numbers.hpp"
#include "cost_model/rank/stages.hpp"
#include "cost_model/remember/sharding_cache.hpp"

namespace zeroplan {

/// What the passes of one pipeline rank need above what is resident, and what stays besides the
/// model states.
struct PassesOfStage {
  MemoryBreakdown resident;
  Footprint passes;
};

/// Which chunks of a stage are alike.
struct ChunkKinds {
  std::vector<std::int32_t> of_chunks;  // of each, the number of its kind in the stage
  std::vector<std::int64_t> places;     // of each, its kind and whether it begins or ends the model
  std::vector<std::size_t> in_list;     // of each kind, its place among all of the pipeline
};

/// The stages of a pipeline, and what is alike in it.
struct StageList {
  std::vector<Stage> stages;
  std::vector<std::size_t> run_of;  // of each stage, its run of alike neighbours
  std::vector<std::size_t> firsts;  // of each run, its first stage
  std::vector<ChunkKinds> kinds;    // of each stage
  std::vector<Stage> chunks;        // one of each kind, as a stage of its own
};

/// What of a layout neither the exchange of states nor recompute changes.
struct StageCache {
  Layout layout;  // with recompute and the sharding at their defaults
  TrainingSpec training;
  const StageList& list;

  // How the stages' states are exchanged, and the place there of each run's content.
  std::shared_ptr<ShardingCache> shardings;
  std::vector<std::size_t> contents;

  // Made when asked for:
  std::vector<std::optional<Bytes>> buffers;    // Megatron-Core's, of each run
  std::vector<const InFlightCounts*> profiles;  // of the first stage of each run
  std::optional<Bytes> boundary;                // Megatron-Core's, between neighbours
  std::optional<double> message;                // seconds between neighbours
  std::optional<double> straggling;
};

/// The fields of a layout that say what it recomputes.
using Recomputing = std::tuple<Recompute, unsigned, std::int64_t, bool>;

/// What of a layout the exchange of states does not change.
struct PassCache {
  template <class T>
  using Few = boost::container::small_vector<T, 4>;

  std::shared_ptr<StageCache> of_stages;
  Recomputing recomputing;

  // Made when asked for:
  std::vector<std::optional<PassesOfStage>> passes;  // of each stage
  Few<std::optional<ChunkBytes>> chunks;             // of each kind
  Few<std::optional<Bytes>> highest;  // of the passes of the first stage of each run, in bytes
  Few<std::optional<Bytes>> kept;     // after the last passes, on Megatron-Core, of each run
  Few<StagePasses> times;             // of each run
  std::vector<double> finished;       // each run, where the update adds nothing

  const StageList& list() const { return of_stages->list; }
  /// Forgets all that was asked for, of other stages or another recompute.
  void renew(std::shared_ptr<StageCache> stages, Recomputing with);
};

/// The pieces of the last few layouts.
class RecentLayouts {
 public:
  RecentLayouts() = default;
  RecentLayouts(const RecentLayouts&) = delete;
  RecentLayouts& operator=(const RecentLayouts&) = delete;

  /// The pieces of this problem, kept from one of the last calls or made anew. Valid until `kept`
  /// other layouts were asked about.
  PassCache& find_or_make(const Problem& problem);

  /// Whether the last call was about this problem.
  bool just_asked(const Problem& problem) const {
    return last_ != nullptr && asked_ == problem.layout &&
           last_->of_stages->training == problem.training;
  }

  void forget_shares();

  static constexpr std::size_t kept = 8;

 private:
  PassCache& find(const Problem& problem);
  const std::shared_ptr<StageCache>& stages_of(const Problem& problem);
  const StageList& list_of(const Problem& problem);

  std::list<PassCache> recent_;                           // the latest first
  std::list<std::shared_ptr<StageCache>> recent_stages_;  // the latest first
  // All lists and shardings, by what they depend on.
  std::unordered_map<Numbers<5>, StageList, NumbersHash> lists_;
  std::unordered_map<GridKey, std::shared_ptr<ShardingCache>, NumbersHash> shardings_;
  // What the last call was about: one evaluation asks many times.
  Layout asked_;
  PassCache* last_ = nullptr;
};

}  // namespace zeroplan
