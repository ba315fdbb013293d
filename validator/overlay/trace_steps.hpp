#pragma once
// Which events of a trace belong to which step. Private to this folder.

#include "validator/overlay/trace.hpp"

namespace zeroplan {

struct TraceStep {
  std::string name;
  double start = 0;  // of these seconds, of which the events take some
  double seconds = 0;
  std::vector<std::size_t> events;  // of the busiest device, in order of their start
};

struct TraceSteps {
  std::vector<TraceStep> steps;  // with events; at least one
  std::size_t devices = 0;
};

/// As measured_step.hpp says. A step lasts from its first kernel to that of the one that follows at
/// once; the last as long as the host was in it, or as its kernels beside collectives, where that
/// is longer: what reduces and gathers may run into the next.
TraceSteps trace_steps(const Trace& trace);

}  // namespace zeroplan
