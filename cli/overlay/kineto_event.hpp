#pragma once
// One event of a trace while its JSON is read, and what becomes of it. Private to this folder.

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "validator/overlay/trace.hpp"

namespace zeroplan {

/// What its keys said.
struct KinetoEvent {
  std::string name, category, phase;
  double start = 0, duration = 0;  // microseconds
  bool has_start = false, has_duration = false;
  std::int64_t correlation = -1;
  std::int64_t thread = 0;
  std::int64_t device = 0;
  std::int64_t bytes = 0;
  NotedCall call;
  std::int64_t inputs = 0, outputs = 0;  // elements of a collective
  std::string type;                      // of these
};

/// Makes a Trace of events that come one after another.
class TraceBuilder {
 public:
  explicit TraceBuilder(std::string where) : where_(std::move(where)) {}

  /// Throws InputError where its times are none, or there are too many.
  void add(const KinetoEvent& event);

  Trace& trace() { return trace_; }
  /// After the last event. Throws InputError where nothing was kept.
  Trace finish();

 private:
  void add_window(const KinetoEvent& event, std::vector<TraceWindow>& windows);
  void add_work(const KinetoEvent& event, bool on_device);
  std::int32_t name_of(const std::string& name);
  std::int32_t call_of(const KinetoEvent& event);

  std::string where_;
  Trace trace_;
  std::unordered_map<std::string, std::int32_t> names_;
  std::vector<std::int64_t> correlations_;                 // of events
  std::vector<std::pair<std::int64_t, double>> launches_;  // correlation, when
};

}  // namespace zeroplan
