// What does a rank do, and how do many run here? Front doors: run_steps, run_threads.
#include "validator/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

namespace zeroplan::engine {

Place place_of(const Layout& layout, std::int64_t rank) {
  return {rank % layout.tp, rank / layout.tp % layout.dp, rank / (layout.tp * layout.dp)};
}

std::int64_t rank_of(const Layout& layout, const Place& place) {
  return place.tp + layout.tp * (place.dp + layout.dp * place.pp);
}

Seat seat_at_ends(const Problem& problem, const Place& place) {
  const std::int64_t last = problem.layout.pp - 1;
  const bool at_end = place.pp == 0 || place.pp == last;
  if (!problem.model.tied_embeddings || last == 0 || !at_end) return {};
  return {place.pp == 0 ? 0 : 1, 2};
}

AbsentGroups::AbsentGroups(const Problem& problem, const Place& place)
    : tp_(place.tp, problem.layout.tp),
      dp_(place.dp, problem.layout.dp),
      pp_(place.pp, problem.layout.pp),
      ends_(seat_at_ends(problem, place).rank, seat_at_ends(problem, place).size) {}

namespace {

// The first loads and connects what later ones find.
StepSeconds usual(std::vector<StepSeconds> laps) {
  if (laps.empty()) return {};
  const auto first = laps.begin() + (laps.size() > 1 ? 1 : 0);
  const auto middle = first + (laps.end() - first) / 2;
  std::nth_element(first, middle, laps.end(),
                   [](const StepSeconds& a, const StepSeconds& b) { return a.step < b.step; });
  return *middle;
}

}  // namespace

RankReport run_steps(const Problem& problem,
                     const Place& place,
                     Device& device,
                     const Groups& groups,
                     const RunOptions& options) {
  Memory memory(device, options.capacity);
  const Rank rank{memory,
                  groups.tp,
                  groups.dp,
                  groups.pp,
                  groups.ends,
                  shape_of(problem, place.tp),
                  problem.layout.zero,
                  problem.runtime.zeroplan};
  Engine engine(problem, place, rank, options.samples);
  engine.adam = options.adam;
  const std::int64_t number = rank_of(problem.layout, place);
  RankReport report;
  report.place = place;
  Stopwatch watch([&] { return device.now(); });
  std::vector<StepSeconds> laps;
  if (options.timed) {
    device.time_with(&watch);
    groups.tp.time_with(&watch, "tp");
    groups.dp.time_with(&watch, "dp");
    groups.pp.time_with(&watch, "pp");
    groups.ends.time_with(&watch, "embedding");
    watch.lap();
  }
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    if (options.before_step) options.before_step(number, step);
    for (Communicator* group : {&groups.tp, &groups.dp, &groups.pp, &groups.ends}) {
      group->forget_traffic();
    }
    report.losses.push_back(engine.step(step));
    if (options.timed) laps.push_back(watch.lap());
  }
  report.seconds = usual(std::move(laps));
  report.traffic = {{"tp", groups.tp.size(), groups.tp.traffic()},
                    {"dp", groups.dp.size(), groups.dp.traffic()},
                    {"pp", groups.pp.size(), groups.pp.traffic()},
                    {"embedding", groups.ends.size(), groups.ends.traffic()}};
  report.peak = memory.ledger().peak();
  for (DividedUnit* unit : engine.units()) {
    report.own_parameters.push_back(unit->own_parameters());
    report.kept_parameters.push_back(unit->kept_parameters());
  }
  return report;
}

RunOptions with_samples(const Problem& problem, const RunOptions& options) {
  RunOptions with = options;
  if (!with.samples) {
    with.samples = successions(problem.model.vocab_size, problem.training.sequence_length);
  }
  return with;
}

Meetings::Meetings(const Layout& layout, Alarm& alarm) : layout_(layout) {
  const auto add = [&](List& list, std::int64_t ranks, std::int64_t meetings) {
    for (std::int64_t i = 0; i < meetings; ++i) {
      list.push_back(std::make_unique<Meeting>(alarm, ranks));
    }
  };
  const std::int64_t world = world_size(layout);
  add(tp_, layout.tp, world / layout.tp);
  add(dp_, layout.dp, world / layout.dp);
  add(pp_, layout.pp, world / layout.pp);
  add(ends_, 2, world / layout.pp);
}

double run_threads(std::int64_t ranks,
                   Alarm& alarm,
                   const std::function<void(std::int64_t rank)>& work) {
  std::exception_ptr first_failure;
  std::mutex failing;
  const auto guarded = [&](std::int64_t rank) {
    try {
      work(rank);
    } catch (const std::exception& error) {
      {
        const std::lock_guard lock(failing);
        if (!first_failure) first_failure = std::current_exception();
      }
      alarm.raise("rank " + std::to_string(rank) + " failed: " + error.what());
    }
  };
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::int64_t rank = 0; rank < ranks; ++rank) threads.emplace_back(guarded, rank);
  }
  const auto end = std::chrono::steady_clock::now();
  if (first_failure) std::rethrow_exception(first_failure);
  return std::chrono::duration<double>(end - start).count();
}

}  // namespace zeroplan::engine
