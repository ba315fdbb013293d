#pragma once
// One step of a trace, as what its time went to.

#include "validator/overlay/step_work.hpp"
#include "validator/overlay/trace.hpp"

namespace zeroplan {

/// A copy between host and device: what it reached.
struct CopyRate {
  bool to_device = false;
  std::int64_t bytes = 0;
  double seconds = 0;
};

/// Calls of one kind, group size and payload, each by itself.
struct CallTimes {
  Collective collective{};
  std::int64_t ranks = 0;
  std::int64_t payload = 0;  // bytes as in collective.hpp
  std::vector<double> seconds;
};

struct MeasuredStep {
  StepWork work;
  std::string name;       // "ProfilerStep#7"; empty: all of the trace
  std::size_t steps = 0;  // of the trace that have work in them
  double shortest = 0;    // seconds of these
  double longest = 0;
  std::size_t devices = 0;  // of the trace; the busiest is looked at
  std::vector<CopyRate> copies;
  std::vector<CallTimes> timed_calls;
};

/// The step that takes the median time of all that `trace` has work in; of an even number the
/// shorter one in the middle. A kernel belongs to the step in which the host launched it, where
/// the trace says so, else to that in which it starts; without steps all of the trace is one. Of
/// operators of a host the time of those within them is not counted twice. The optimizer's are
/// those within its window, or by name. Assumes that `trace` has events.
MeasuredStep measured_step(const Trace& trace);

}  // namespace zeroplan
