#pragma once
// The threads of a search, each with its own tools, and what they found out by playing plans.

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planner/sweep/shape_search.hpp"

namespace zeroplan {

class Crew {
 public:
  /// The spaces must outlive it.
  Crew(const std::vector<SearchSpace>& spaces, std::size_t threads)
      : allowed_(oneapi::tbb::global_control::max_allowed_parallelism, threads),
        arena_(static_cast<int>(threads)),
        workers_([&spaces] { return std::make_unique<ShapeSearch>(spaces); }) {}

  /// Calls work(worker, i) for each i from `first` to before `last`.
  template <class Work>
  void in_parallel(std::size_t first, std::size_t last, Work&& work) {
    arena_.execute([&] {
      oneapi::tbb::parallel_for(first, last, [&](std::size_t i) { work(*workers_.local(), i); });
    });
  }

  ShapeSearch& worker() { return *workers_.local(); }

  /// Whether a plan was played, and then what that gave: nothing where it does not fit.
  struct Outcome {
    Scored plan;
    std::optional<Estimate> estimate;
  };
  const Outcome* played(const Scored& plan) const {
    for (const auto& known : played_) {
      if (same_plan(known->plan, plan)) return known.get();
    }
    return nullptr;
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
  oneapi::tbb::global_control allowed_;
  oneapi::tbb::task_arena arena_;
  oneapi::tbb::enumerable_thread_specific<std::unique_ptr<ShapeSearch>> workers_;
  std::vector<std::unique_ptr<Outcome>> played_;
};

}  // namespace zeroplan
