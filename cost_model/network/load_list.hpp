#pragma once
// The collectives of one rank, gathered while each kind of parallelism adds its own.

#include <string_view>
#include <utility>
#include <vector>

#include "cost_model/network/volume.hpp"

namespace zeroplan {

class LoadList {
 public:
  /// The problem must outlive it.
  explicit LoadList(const Problem& problem) : problem_(problem), groups_(rank_groups(problem)) {}

  /// The group of this name; of one rank where the layout has none.
  RankGroup group(std::string_view name) const { return called_group(problem_, groups_, name); }

  /// Calls of a program.
  void add_calls(const std::vector<Call>& calls) {
    for (const Call& call : calls) add(load_of(call));
  }
  CollectiveLoad load_of(const Call& call) const {
    const RankGroup all = group(call.group);
    const auto among = [&](const RankGroup& ranks) -> CollectiveLoad {
      return {ranks,        call.collective, call.during, call.times,
              call.payload, call.beside,     call.layers};
    };
    if (call.across == Across::group) return among(all);
    const std::int64_t local = ranks_on_a_node(problem_.cluster, all);
    return call.across == Across::node ? among({all.name, local, all.stride})
                                       : among({all.name, all.ranks / local, all.stride * local});
  }

  /// Adds what is sent at all. Alike calls are one load.
  void add(const CollectiveLoad& load) {
    if (!load.is_sent()) return;
    for (CollectiveLoad& before : loads_) {
      if (!before.is_like(load)) continue;
      before.calls += load.calls;
      return;
    }
    loads_.push_back(load);
  }

  std::vector<CollectiveLoad> take() { return std::move(loads_); }

 private:
  const Problem& problem_;
  RankGroups groups_;
  std::vector<CollectiveLoad> loads_;
};

}  // namespace zeroplan
