// How fast were the collectives? Front door: take_collectives.
#include "validator/overlay/calibrated_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cost_model/explain/rank_map.hpp"
#include "cost_model/network/collective_time.hpp"

namespace zeroplan {
namespace {

constexpr double enough_to_count = 0.005;  // of the step

double middle(std::vector<double> values) {
  std::ranges::sort(values);
  return values[(values.size() - 1) / 2];
}

// Measured over expected: of calls whose payload was noted, each size by its median, since a call
// that waits for other ranks is long; else of all together.
double ratio_of(const Problem& problem,
                const GroupPlacement& placed,
                const OverlayRow& row,
                const MeasuredStep& measured) {
  double noted = 0, expected = 0;
  for (const CallTimes& calls : measured.timed_calls) {
    if (calls.collective != *row.collective || calls.ranks != row.ranks) continue;
    const auto count = static_cast<double>(calls.seconds.size());
    noted += count * middle(calls.seconds);
    expected += count * collective_time(calls.collective, problem.cluster, placed.group,
                                        Bytes{calls.payload})
                            .seconds;
  }
  return expected > 0 ? noted / expected : *row.ratio();
}

MeasuredCollective scaled_table(const Problem& problem,
                                const GroupPlacement& placed,
                                Collective collective,
                                double ratio) {
  MeasuredCollective table{.collective = collective,
                           .ranks = placed.group.ranks,
                           .ranks_per_node = placed.ranks_on_a_node};
  constexpr std::int64_t smallest = 1 << 10, largest = std::int64_t{16} << 30;
  for (std::int64_t bytes = smallest; bytes <= largest; bytes *= 2) {
    const double seconds =
        ratio * collective_time(collective, problem.cluster, placed.group, Bytes{bytes}).seconds;
    table.points.push_back({.payload = Bytes{bytes}, .seconds = seconds});
  }
  return table;
}

}  // namespace

void take_collectives(const Problem& problem,
                      const MeasuredStep& measured,
                      const Overlay& overlay,
                      Calibration& out) {
  const std::vector<GroupPlacement> groups = group_placements(problem);
  for (const OverlayRow& row : overlay.rows) {
    if (row.work != Work::collective || !row.measured || !row.predicted) continue;
    const auto placed = std::ranges::find_if(groups, [&](const GroupPlacement& g) {
      return g.group.name == row.group && g.group.ranks == row.ranks;
    });
    if (placed == groups.end() || !row.collective) {
      out.left.push_back(fmt::format("{}: no one kind of group has all of them", row.name));
      continue;
    }
    if (row.measured->seconds < enough_to_count * overlay.measured) {
      out.left.push_back(fmt::format("{}: {:.2f} % of the step, and 0.5 % are needed", row.name,
                                     100 * row.measured->seconds / overlay.measured));
      continue;
    }
    const double ratio = ratio_of(problem, *placed, row, measured);
    std::vector<MeasuredCollective>& tables = out.cluster.measured;
    std::erase_if(tables, [&](const MeasuredCollective& t) {
      return t.collective == *row.collective && t.ranks == placed->group.ranks &&
             t.ranks_per_node == placed->ranks_on_a_node;
    });
    tables.push_back(scaled_table(problem, *placed, *row.collective, ratio));
    out.taken.push_back(fmt::format("{} takes {:.3f} times what is expected", row.name, ratio));
  }
}

}  // namespace zeroplan
