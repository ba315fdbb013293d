#pragma once
// How the stages of layouts with one grid exchange their states: the same for every schedule on it,
// and for every split of the layers whose stages hold as much.

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "cost_model/pipeline/stage_time.hpp"
#include "cost_model/remember/rank_states.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"

namespace zeroplan {

/// What is known of each content of a stage, by its place. Most searches ask for few of what an
/// exchange has, so there is room for no more than that.
template <class T>
class KnownOfContents {
 public:
  /// Null where it is not known.
  const T* find(std::size_t place) const {
    return place < known_.size() && known_[place] ? &*known_[place] : nullptr;
  }
  /// Valid until another one is added.
  const T& add(std::size_t place, T value) {
    if (place >= known_.size()) known_.resize(place + 1);
    return *(known_[place] = std::move(value));
  }
  /// Valid until another one is added. `make`: gives it where it is not known.
  template <class Make>
  const T& find_or_make(std::size_t place, Make&& make) {
    if (const T* known = find(place)) return *known;
    return add(place, make());
  }

 private:
  std::vector<std::optional<T>> known_;
};

/// One exchange, of each content of a stage, by its place: what was asked for.
struct ShardedStages {
  struct States {
    const RankStates* share = nullptr;
    RankStates::Sums sums;  // its own, near those of other contents
  };
  std::vector<States> states;
  std::array<KnownOfContents<UpdateLoads>, 3> loads;  // by Overlap
  KnownOfContents<StageUpdate> updates;
  KnownOfContents<FsdpBuckets> buckets, least_buckets;
};

class ShardingCache {
 public:
  /// The place of what a stage holds.
  std::size_t place_of(const StageContent& content);

  /// That of this layout, with any overlap. Valid until they are forgotten.
  ShardedStages& find_or_make(const Layout& layout);

  void forget();

 private:
  std::vector<StageContent> contents_;
  std::vector<Sharding> shardings_;                    // without overlap
  std::vector<std::unique_ptr<ShardedStages>> known_;  // of each
  std::size_t last_ = 0;                               // asked for
};

}  // namespace zeroplan
