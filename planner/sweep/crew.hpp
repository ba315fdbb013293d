#pragma once
// The threads of a search, each with its own tools, and what they found out by playing plans.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/sweep/large_pages.hpp"
#include "planner/sweep/shape_search.hpp"
#include "planner/sweep/thread_team.hpp"

namespace zeroplan {

class Crew {
 public:
  /// The spaces must outlive it.
  Crew(const std::vector<SearchSpace>& spaces, std::size_t threads)
      : spaces_(spaces), team_(threads), workers_(team_.size()) {}

  /// One thread of `all` by itself, with what they have played so far: within a task of theirs.
  Crew(const Crew& all, ShapeSearch& own)
      : spaces_(all.spaces_), team_(1), workers_(1), own_(&own), all_(&all) {}

  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  /// What they remember takes as long to free as some plans to find.
  ~Crew() {
    team_.each(0, workers_.size(), [&](std::size_t, std::size_t i) { workers_[i].reset(); });
  }

  /// Calls work(worker, i) for each i from `first` to before `last`; `home`: as ThreadTeam has it.
  template <class Work>
  void in_parallel(std::size_t first,
                   std::size_t last,
                   Work&& work,
                   const ThreadTeam::Home& home = {}) {
    team_.each(
        first, last, [&](std::size_t member, std::size_t i) { work(worker(member), i); }, home);
  }

  ShapeSearch& worker() { return worker(0); }

  /// Whether a plan was played, and then what that gave: nothing where it does not fit.
  struct Outcome {
    Scored plan;
    std::optional<Estimate> estimate;
  };
  const Outcome* played(const Scored& plan) const {
    for (const auto& known : played_) {
      if (same_plan(known->plan, plan)) return known.get();
    }
    return all_ != nullptr ? all_->played(plan) : nullptr;
  }

  /// Plays plans of the spaces, each of which was not played before.
  void play(const std::vector<std::pair<std::size_t, Scored>>& plans) {
    const std::size_t first = played_.size();
    for (const auto& [space, plan] : plans) {
      played_.push_back(std::make_unique<Outcome>(Outcome{plan, std::nullopt}));
    }
    in_parallel(0, plans.size(), [&](ShapeSearch& worker, std::size_t i) {
      played_[first + i]->estimate = worker.played(plans[i].first, plans[i].second);
    });
  }

 private:
  // Made with its member's first task, by that member.
  ShapeSearch& worker(std::size_t member) {
    if (own_ != nullptr) return *own_;
    std::unique_ptr<ShapeSearch>& worker = workers_[member];
    if (!worker) {
      use_large_pages();
      worker = std::make_unique<ShapeSearch>(spaces_);
    }
    return *worker;
  }

  const std::vector<SearchSpace>& spaces_;
  ThreadTeam team_;
  std::vector<std::unique_ptr<ShapeSearch>> workers_;
  ShapeSearch* own_ = nullptr;
  const Crew* all_ = nullptr;
  std::vector<std::unique_ptr<Outcome>> played_;
};

}  // namespace zeroplan
