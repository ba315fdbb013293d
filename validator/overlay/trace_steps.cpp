// Which events belong to which step? Front door: trace_steps.
#include "validator/overlay/trace_steps.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "validator/overlay/work_kind.hpp"

namespace zeroplan {
namespace {

std::int16_t busiest_device(const Trace& trace, std::size_t& devices) {
  std::map<std::int16_t, double> seconds;
  for (const TraceEvent& event : trace.events) seconds[event.device] += event.seconds;
  devices = seconds.size();
  return std::ranges::max_element(seconds, {}, [](const auto& s) { return s.second; })->first;
}

std::vector<TraceWindow> in_order(std::vector<TraceWindow> windows, bool on_device) {
  std::erase_if(windows, [&](const TraceWindow& w) { return w.on_device != on_device; });
  std::ranges::sort(windows, {}, &TraceWindow::start);
  return windows;
}

// The one that holds this time; none of them overlap.
std::ptrdiff_t place_of(const std::vector<TraceWindow>& windows, double time) {
  const auto after = std::ranges::upper_bound(windows, time, {}, &TraceWindow::start);
  if (after == windows.begin() || !std::prev(after)->holds(time)) return -1;
  return std::prev(after) - windows.begin();
}

TraceStep whole(const Trace& trace, std::int16_t device) {
  TraceStep all;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].device == device) all.events.push_back(i);
  }
  return all;
}

double start_of(const Trace& trace, const TraceStep& step) {
  return trace.events[step.events.front()].start;
}

void order(const Trace& trace, TraceStep& step) {
  std::ranges::stable_sort(step.events, {}, [&](std::size_t i) { return trace.events[i].start; });
  double end = 0;
  for (const std::size_t i : step.events) {
    const TraceEvent& event = trace.events[i];
    const bool travels =
        event.call >= 0 ||
        work_of(trace.names[static_cast<std::size_t>(event.name)]) == Work::collective;
    if (!travels) end = std::max(end, event.end());
  }
  const double first = start_of(trace, step);
  if (first >= step.start && end <= step.start + step.seconds) return;
  step.start = first;
  step.seconds = std::max(step.seconds, end - first);
}

// From the first kernel of one to that of the next, where no step between them is missing.
void time_by_next(const Trace& trace,
                  const std::vector<TraceWindow>& windows,
                  const std::vector<std::size_t>& window_of,
                  std::vector<TraceStep>& steps) {
  constexpr double pause = 0.1;  // of a step
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    const TraceWindow& own = windows[window_of[i]];
    const TraceWindow& next = windows[window_of[i + 1]];
    if (next.start - own.end > pause * (own.end - own.start)) continue;
    steps[i].start = start_of(trace, steps[i]);
    steps[i].seconds = start_of(trace, steps[i + 1]) - steps[i].start;
  }
}

}  // namespace

TraceSteps trace_steps(const Trace& trace) {
  TraceSteps out;
  const std::int16_t device = busiest_device(trace, out.devices);
  const std::vector<TraceWindow> host = in_order(trace.steps, false);
  const std::vector<TraceWindow> on_device = in_order(trace.steps, true);
  const std::vector<TraceWindow>& windows = host.empty() ? on_device : host;
  std::vector<TraceStep> steps(windows.size());
  for (std::size_t i = 0; i < windows.size(); ++i) {
    steps[i].name = windows[i].name;
    steps[i].start = windows[i].start;
    steps[i].seconds = windows[i].end - windows[i].start;
  }
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.device != device) continue;
    const bool by_launch = !host.empty() && !std::isnan(event.launched);
    const std::ptrdiff_t place = place_of(windows, by_launch ? event.launched : event.start);
    if (place >= 0) steps[static_cast<std::size_t>(place)].events.push_back(i);
  }
  std::vector<std::size_t> window_of;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].events.empty()) window_of.push_back(i);
  }
  std::erase_if(steps, [](const TraceStep& step) { return step.events.empty(); });
  if (steps.empty()) steps.push_back(whole(trace, device));
  for (TraceStep& step : steps) order(trace, step);
  time_by_next(trace, windows, window_of, steps);
  out.steps = std::move(steps);
  return out;
}

}  // namespace zeroplan
