// What would have been measured at this size? Front doors: measured_points, interpolated_seconds.
#include "cost_model/question/measured_time.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace zeroplan {

std::span<const MeasuredPoint> measured_points(std::span<const MeasuredCollective> tables,
                                               Collective collective,
                                               std::int64_t ranks,
                                               std::int64_t ranks_per_node) {
  for (const MeasuredCollective& table : tables) {
    if (table.collective == collective && table.ranks == ranks &&
        table.ranks_per_node == ranks_per_node) {
      return table.points;
    }
  }
  return {};
}

double interpolated_seconds(std::span<const MeasuredPoint> points, Bytes payload) {
  assert(!points.empty());
  const auto bytes = [](Bytes b) { return static_cast<double>(b.count()); };
  const auto above = std::ranges::lower_bound(points, payload, {}, &MeasuredPoint::payload);
  if (above == points.begin()) return points.front().seconds;
  if (above == points.end()) {
    return points.back().seconds * bytes(payload) / bytes(points.back().payload);
  }
  const MeasuredPoint& low = *(above - 1);
  const MeasuredPoint& high = *above;
  const double part = std::log(bytes(payload) / bytes(low.payload)) /
                      std::log(bytes(high.payload) / bytes(low.payload));
  return low.seconds * std::pow(high.seconds / low.seconds, part);
}

}  // namespace zeroplan
