// How do all ranks of a layout run here? Front doors: run_on_host, count_rank.
#include "validator/run.hpp"

#include "validator/device/dry_device.hpp"
#include "validator/host/host_device.hpp"
#include "validator/ranks.hpp"

namespace zeroplan::engine {

RunReport run_on_host(const Problem& problem, const RunOptions& asked) {
  const RunOptions options = with_samples(problem, asked);
  const Layout& l = problem.layout;
  Alarm alarm(options.patience);
  Meetings meetings(l, alarm);
  RunReport report;
  report.ranks.resize(static_cast<std::size_t>(world_size(l)));
  report.seconds = run_threads(world_size(l), alarm, [&](std::int64_t rank) {
    const Place p = place_of(l, rank);
    HostDevice device;
    Loopback tp(meetings.tp(p), p.tp, l.tp);
    Loopback dp(meetings.dp(p), p.dp, l.dp);
    Loopback pp(meetings.pp(p), p.pp, l.pp);
    const Seat seat = seat_at_ends(problem, p);
    Loopback ends(meetings.ends(p), seat.rank, seat.size);
    report.ranks[static_cast<std::size_t>(rank)] =
        run_steps(problem, p, device, {tp, dp, pp, ends}, options);
  });
  return report;
}

RankReport count_rank(const Problem& problem, const Place& place) {
  DryDevice device;
  AbsentGroups absent(problem, place);
  RunOptions options;
  options.steps = 1;
  return run_steps(problem, place, device, absent, options);
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
