#pragma once
// Times that somebody measured, between and beyond the sizes that they measured.

#include <cstdint>
#include <span>
#include <vector>

#include "cost_model/question/collective.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

/// One line of an nccl-tests table of one collective over one group.
struct MeasuredPoint {
  Bytes payload;  // > 0; as in collective.hpp
  double seconds = 0;
  friend bool operator==(const MeasuredPoint&, const MeasuredPoint&) = default;
};

/// The whole table, for groups that stand on the nodes in one way.
struct MeasuredCollective {
  Collective collective = Collective::all_reduce;
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;    // most of them on one node
  std::vector<MeasuredPoint> points;  // payloads rise
  friend bool operator==(const MeasuredCollective&, const MeasuredCollective&) = default;
};

/// The points of the table with this collective and this kind of group; empty when nobody measured
/// it. A table of other sizes says nothing: times do not scale with ranks in any simple way.
std::span<const MeasuredPoint> measured_points(std::span<const MeasuredCollective> tables,
                                               Collective collective,
                                               std::int64_t ranks,
                                               std::int64_t ranks_per_node);

/// Seconds for `payload`: a straight line between the two nearest points in log bytes and log time,
/// since both run over many orders of magnitude. Below the first point its time, which is all
/// latency; above the last its bandwidth. `points` is not empty, and its payloads rise.
double interpolated_seconds(std::span<const MeasuredPoint> points, Bytes payload);

}  // namespace zeroplan
