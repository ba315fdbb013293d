// How do all ranks of a layout run here? Front doors: run_on_host, count_rank.
#include "validator/run.hpp"

#include <exception>
#include <mutex>
#include <thread>

#include "validator/communicator/absent_peers.hpp"
#include "validator/communicator/loopback.hpp"
#include "validator/device/dry_device.hpp"
#include "validator/host/host_device.hpp"

namespace zeroplan::engine {
namespace {

// The communicators of one rank.
struct Groups {
  Communicator& tp;
  Communicator& dp;
  Communicator& pp;
};

RankReport run_rank(const Problem& problem,
                    const Place& place,
                    std::int64_t world_rank,
                    Device& device,
                    const Groups& groups,
                    const RunOptions& options) {
  Memory memory(device, options.capacity);
  const Rank rank{
      memory, groups.tp, groups.dp, groups.pp, shape_of(problem, place.tp), problem.layout.zero};
  Engine engine(problem, place, rank, options.samples);
  engine.adam = options.adam;
  RankReport report;
  report.place = place;
  const auto lists = {std::pair<std::string_view, Communicator*>{"tp", &groups.tp},
                      {"dp", &groups.dp},
                      {"pp", &groups.pp}};
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    if (options.before_step) options.before_step(world_rank, step);
    for (const auto& [name, group] : lists) group->forget_traffic();
    report.losses.push_back(engine.step(step));
  }
  for (const auto& [name, group] : lists) {
    report.traffic.push_back({name, group->size(), group->traffic()});
  }
  report.peak = memory.ledger().peak();
  for (DividedUnit* unit : engine.units()) {
    report.own_parameters.push_back(unit->own_parameters());
    report.kept_parameters.push_back(unit->kept_parameters());
  }
  return report;
}

// Where all ranks of a layout meet, group by group.
class Meetings {
 public:
  Meetings(const Layout& layout, Alarm& alarm) : layout_(layout) {
    const auto add = [&](std::vector<std::unique_ptr<Meeting>>& list, std::int64_t ranks) {
      for (std::int64_t i = 0; i < world_size(layout) / ranks; ++i) {
        list.push_back(std::make_unique<Meeting>(alarm, ranks));
      }
    };
    add(tp_, layout.tp);
    add(dp_, layout.dp);
    add(pp_, layout.pp);
  }

  Loopback tp(const Place& p) { return {at(tp_, p.pp * layout_.dp + p.dp), p.tp, layout_.tp}; }
  Loopback dp(const Place& p) { return {at(dp_, p.pp * layout_.tp + p.tp), p.dp, layout_.dp}; }
  Loopback pp(const Place& p) { return {at(pp_, p.dp * layout_.tp + p.tp), p.pp, layout_.pp}; }

 private:
  static Meeting& at(const std::vector<std::unique_ptr<Meeting>>& list, std::int64_t i) {
    return *list[static_cast<std::size_t>(i)];
  }

  Layout layout_;
  std::vector<std::unique_ptr<Meeting>> tp_, dp_, pp_;
};

Place place_of(const Layout& layout, std::int64_t rank) {
  return {rank % layout.tp, rank / layout.tp % layout.dp, rank / (layout.tp * layout.dp)};
}

}  // namespace

RunReport run_on_host(const Problem& problem, const RunOptions& asked) {
  RunOptions options = asked;
  if (!options.samples) {
    options.samples = successions(problem.model.vocab_size, problem.training.sequence_length);
  }
  const std::int64_t world = world_size(problem.layout);
  Alarm alarm(options.patience);
  Meetings meetings(problem.layout, alarm);
  RunReport report;
  report.ranks.resize(static_cast<std::size_t>(world));
  std::exception_ptr first_failure;
  std::mutex failing;
  const auto work = [&](std::int64_t rank) {
    try {
      const Place place = place_of(problem.layout, rank);
      HostDevice device;
      Loopback tp = meetings.tp(place);
      Loopback dp = meetings.dp(place);
      Loopback pp = meetings.pp(place);
      report.ranks[static_cast<std::size_t>(rank)] =
          run_rank(problem, place, rank, device, {tp, dp, pp}, options);
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
    for (std::int64_t rank = 0; rank < world; ++rank) threads.emplace_back(work, rank);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (first_failure) std::rethrow_exception(first_failure);
  return report;
}

RankReport count_rank(const Problem& problem, const Place& place) {
  const Layout& l = problem.layout;
  DryDevice device;
  AbsentPeers tp(place.tp, l.tp);
  AbsentPeers dp(place.dp, l.dp);
  AbsentPeers pp(place.pp, l.pp);
  RunOptions options;
  options.steps = 1;
  return run_rank(problem, place, 0, device, {tp, dp, pp}, options);
}

std::vector<double> RunReport::losses() const {
  std::vector<double> sums;
  for (const RankReport& rank : ranks) {
    if (rank.place.tp > 0) continue;  // they computed the same
    sums.resize(rank.losses.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += rank.losses[i];
  }
  return sums;
}

SampleSource successions(std::int64_t vocabulary, std::int64_t sequence) {
  return [=](std::int64_t step, std::int64_t sample) {
    constexpr std::int64_t factor = 5;
    constexpr std::int64_t increment = 7;
    Tokens tokens;
    std::int64_t token = (step * 7919 + sample * 104'729) % vocabulary;
    for (std::int64_t i = 0; i <= sequence; ++i) {
      tokens.push_back(static_cast<std::int32_t>(token));
      token = (token * factor + increment) % vocabulary;
    }
    return tokens;
  };
}

}  // namespace zeroplan::engine
