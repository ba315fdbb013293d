#pragma once
// Times that somebody measured, between and beyond the sizes that they measured.

#include <span>

#include "cost_model/units.hpp"

namespace zeroplan {

/// One line of an nccl-tests table of one collective over one group.
struct MeasuredPoint {
  Bytes payload;  // > 0; as in collective.hpp
  double seconds = 0;
};

/// Seconds for `payload`: a straight line between the two nearest points in log bytes and log time,
/// since both run over many orders of magnitude. Below the first point its time, which is all
/// latency; above the last its bandwidth. `points` is not empty, and its payloads rise.
double interpolated_seconds(std::span<const MeasuredPoint> points, Bytes payload);

}  // namespace zeroplan
