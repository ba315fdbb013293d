#pragma once
// The collectives of one rank, gathered while each kind of parallelism adds its own.

#include <string_view>
#include <utility>
#include <vector>

#include "cost_model/network/volume.hpp"

namespace zeroplan {

class LoadList {
 public:
  explicit LoadList(const Problem& problem)
      : groups_(rank_groups(problem)), etp_(problem.layout.etp) {}

  /// The group of this name; of one rank where the layout has none.
  RankGroup group(std::string_view name) const {
    for (const RankGroup& g : groups_) {
      if (g.name == name) return g;
    }
    return {.name = name};
  }

  /// Calls of a program.
  void add_calls(const std::vector<Call>& calls) {
    for (const Call& call : calls) add(load_of(call));
  }
  CollectiveLoad load_of(const Call& call) const {
    const RankGroup of = call.group == "etp" ? RankGroup{"etp", etp_, 1} : group(call.group);
    return {of, call.collective, call.during, call.times, call.payload, call.asynchronous};
  }

  /// Adds what is sent at all. Alike calls are one load.
  void add(const CollectiveLoad& load) {
    if (!load.is_sent()) return;
    for (CollectiveLoad& before : loads_) {
      const bool alike = before.group == load.group && before.collective == load.collective &&
                         before.during == load.during && before.payload == load.payload &&
                         before.asynchronous == load.asynchronous &&
                         before.in_parts == load.in_parts;
      if (!alike) continue;
      before.calls += load.calls;
      return;
    }
    loads_.push_back(load);
  }

  std::vector<CollectiveLoad> take() { return std::move(loads_); }

 private:
  std::vector<RankGroup> groups_;
  std::int64_t etp_;  // ranks that divide one expert
  std::vector<CollectiveLoad> loads_;
};

}  // namespace zeroplan
