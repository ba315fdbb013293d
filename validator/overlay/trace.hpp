#pragma once
// What a profiler saw of a run, as events: kernels and copies of a device, or operators of a host.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace zeroplan {

/// A kernel or copy on a stream, or an operator on a thread.
struct TraceEvent {
  double start = 0;  // seconds from the start of the trace
  double seconds = 0;
  double launched = std::numeric_limits<double>::quiet_NaN();  // by the host, where that is known
  std::int64_t bytes = 0;                                      // of a copy
  std::int64_t thread = 0;                                     // of an operator
  std::int32_t name = 0;                                       // in Trace::names
  std::int32_t call = -1;                                      // in Trace::calls
  std::int16_t device = 0;

  double end() const { return start + seconds; }
};

/// What PyTorch notes of a collective beside its kernel.
/// Source: pytorch/pytorch torch/csrc/distributed/c10d/ParamCommsUtils.hpp; kineto reads it there.
struct NotedCall {
  std::string collective;   // "_allgather_base", "allreduce"; empty: not noted
  std::string group;        // its description: "mesh_dp", "TENSOR_MODEL_PARALLEL_GROUP"
  std::int64_t ranks = 0;   // 0: not noted
  std::int64_t input = 0;   // bytes of a rank
  std::int64_t output = 0;  // bytes of a rank
  friend auto operator<=>(const NotedCall&, const NotedCall&) = default;
};

/// A stretch of time with a name: a step, an optimizer's update.
struct TraceWindow {
  std::string name;
  double start = 0;
  double end = 0;
  bool on_device = false;  // from the first of its kernels to the last; else on the host

  bool holds(double time) const { return time >= start && time < end; }
};

struct Trace {
  std::vector<std::string> names;
  std::vector<NotedCall> calls;
  std::vector<TraceEvent> events;  // of devices where there are any, else of the host
  std::vector<TraceWindow> steps;
  std::vector<TraceWindow> updates;
  std::int64_t rank = -1;  // -1: not said
  std::int64_t world = 0;  // 0: not said
  std::string gpu;         // of the first device; empty: not said
  bool on_device = false;
};

}  // namespace zeroplan
