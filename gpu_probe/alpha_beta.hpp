#pragma once
// A line through measured times: t = latency + bytes / rate.

#include <span>

#include "cost_model/question/measured_time.hpp"

namespace zeroplan {

struct AlphaBeta {
  double latency = 0;           // alpha, seconds
  double bytes_per_second = 0;  // 1 / beta
  double worst_residual = 0;    // largest |fitted - measured| / measured; 0.1 is ten percent

  double seconds(Bytes payload) const {
    return latency + static_cast<double>(payload.count()) / bytes_per_second;
  }
};

/// The middle of the values, the mean of the two middle ones of an even number. Not empty.
double median(std::span<const double> values);

/// Fits relative errors, so that a kilobyte counts as much as a gigabyte, and lets single outliers
/// count little (Huber's weights, re-weighted until they settle). Neither latency nor time per byte
/// gets below zero. At least two points of different payloads. A summary for people: between its
/// points a table is read itself, since NCCL changes its protocol with size.
AlphaBeta fit_alpha_beta(std::span<const MeasuredPoint> points);

}  // namespace zeroplan
