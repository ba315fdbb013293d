// What becomes of an event of a trace? Front door: TraceBuilder.
#include "cli/overlay/kineto_event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t most_events = 20'000'000;
constexpr std::size_t longest_name = 160;  // templates of kernels run to kilobytes
constexpr double microsecond = 1e-6;

enum class EventKind { kernel, copy, launch, operation, annotation, device_annotation, none };

// As Kineto writes them, and as PyTorch before 1.12 did.
EventKind kind_of(std::string_view text) {
  constexpr std::pair<std::string_view, EventKind> known[] = {
      {"kernel", EventKind::kernel},
      {"gpu_memcpy", EventKind::copy},
      {"gpu_memset", EventKind::copy},
      {"cuda_runtime", EventKind::launch},
      {"cuda_driver", EventKind::launch},
      {"cpu_op", EventKind::operation},
      {"user_annotation", EventKind::annotation},
      {"gpu_user_annotation", EventKind::device_annotation},
      {"Kernel", EventKind::kernel},
      {"Memcpy", EventKind::copy},
      {"Memset", EventKind::copy},
      {"Runtime", EventKind::launch},
      {"Operator", EventKind::operation},
  };
  const auto* found =
      std::ranges::find(known, text, &std::pair<std::string_view, EventKind>::first);
  return found == std::end(known) ? EventKind::none : found->second;
}

// A name for one line of a terminal.
std::string shown_name(std::string_view name) {
  std::string text(name.substr(0, longest_name));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

std::int64_t size_of(std::string_view type) {
  constexpr std::pair<std::string_view, std::int64_t> sizes[] = {
      {"Byte", 1},  {"Char", 1}, {"Bool", 1},   {"Half", 2}, {"BFloat16", 2},
      {"Float", 4}, {"Int", 4},  {"Double", 8}, {"Long", 8}, {"Float8_e4m3fn", 1},
  };
  const auto* found =
      std::ranges::find(sizes, type, &std::pair<std::string_view, std::int64_t>::first);
  return found == std::end(sizes) ? 0 : found->second;
}

constexpr std::int64_t most_elements = std::int64_t{1} << 50;

std::int64_t bytes_of(std::int64_t elements, std::string_view type) {
  return elements > 0 && elements < most_elements ? elements * size_of(type) : 0;
}

}  // namespace

std::int32_t TraceBuilder::name_of(const std::string& name) {
  const std::string shown = shown_name(name);
  const auto [known, is_new] =
      names_.try_emplace(shown, static_cast<std::int32_t>(trace_.names.size()));
  if (is_new) trace_.names.push_back(shown);
  return known->second;
}

std::int32_t TraceBuilder::call_of(const KinetoEvent& event) {
  if (event.call.collective.empty()) return -1;
  NotedCall call = event.call;
  call.collective = shown_name(call.collective);
  call.group = shown_name(call.group);
  call.ranks = std::clamp<std::int64_t>(call.ranks, 0, most_elements);
  call.input = bytes_of(event.inputs, event.type);
  call.output = bytes_of(event.outputs, event.type);
  const auto known = std::ranges::find(trace_.calls, call);
  constexpr std::ptrdiff_t most_kinds = 4096;  // beyond, what was noted is not told apart
  if (known == trace_.calls.end() && trace_.calls.end() - trace_.calls.begin() < most_kinds) {
    trace_.calls.push_back(call);
    return static_cast<std::int32_t>(trace_.calls.size() - 1);
  }
  return known == trace_.calls.end() ? -1 : static_cast<std::int32_t>(known - trace_.calls.begin());
}

void TraceBuilder::add_window(const KinetoEvent& event, std::vector<TraceWindow>& windows) {
  windows.push_back({shown_name(event.name), event.start * microsecond,
                     (event.start + event.duration) * microsecond,
                     kind_of(event.category) == EventKind::device_annotation});
}

void TraceBuilder::add_work(const KinetoEvent& event, bool on_device) {
  if (on_device && !trace_.on_device) {
    trace_.events.clear();
    correlations_.clear();
  }
  trace_.on_device = trace_.on_device || on_device;
  if (trace_.events.size() == most_events) {
    throw InputError(fmt::format("{}: more than {} kernels or operators; profile fewer steps",
                                 where_, most_events));
  }
  TraceEvent work{.start = event.start * microsecond,
                  .seconds = event.duration * microsecond,
                  .bytes = std::max<std::int64_t>(0, event.bytes),
                  .thread = event.thread,
                  .name = name_of(event.name),
                  .call = on_device ? call_of(event) : -1};
  if (on_device) {
    work.device = static_cast<std::int16_t>(std::clamp<std::int64_t>(event.device, 0, 1024));
    correlations_.push_back(event.correlation);
  }
  trace_.events.push_back(work);
}

void TraceBuilder::add(const KinetoEvent& event) {
  if (event.phase != "X") return;
  const EventKind category = kind_of(event.category);
  const bool step = event.name.starts_with("ProfilerStep");
  const bool update = event.name.starts_with("Optimizer.step");
  if (category == EventKind::none && !step) return;
  constexpr double longest = 1e18;  // microseconds
  if (!event.has_start || !event.has_duration || !(event.duration >= 0) ||
      !(event.duration < longest) || !(std::abs(event.start) < longest)) {
    throw InputError(fmt::format(
        "{}: event \"{}\" has no usable \"ts\" and \"dur\" in microseconds, as a trace of "
        "torch.profiler has",
        where_, shown_name(event.name)));
  }
  if (step) return add_window(event, trace_.steps);
  if (update) return add_window(event, trace_.updates);
  switch (category) {
    case EventKind::kernel:
    case EventKind::copy:
      return add_work(event, true);
    case EventKind::operation:
      if (!trace_.on_device) add_work(event, false);
      return;
    case EventKind::annotation:  // Gloo's collectives have no operator of their own
      if (!trace_.on_device && event.name.starts_with("gloo:")) add_work(event, false);
      return;
    case EventKind::launch:
      if (event.correlation >= 0) {
        launches_.emplace_back(event.correlation, event.start * microsecond);
      }
      return;
    default:
      return;
  }
}

Trace TraceBuilder::finish() {
  if (trace_.events.empty()) {
    throw InputError(
        fmt::format("{}: has neither kernels (\"cat\": \"kernel\") nor operators (\"cpu_op\"); "
                    "torch.profiler's export_chrome_trace writes them",
                    where_));
  }
  std::ranges::sort(launches_);
  for (std::size_t i = 0; i < correlations_.size(); ++i) {
    const std::int64_t correlation = correlations_[i];
    const auto launch = std::ranges::lower_bound(launches_, correlation, {},
                                                 &std::pair<std::int64_t, double>::first);
    if (correlation >= 0 && launch != launches_.end() && launch->first == correlation) {
      trace_.events[i].launched = launch->second;
    }
  }
  // Counted from the first of them: seconds since 1970 leave few digits.
  double first = trace_.events.front().start;
  for (const TraceEvent& event : trace_.events) first = std::min(first, event.start);
  for (TraceEvent& event : trace_.events) {
    event.start -= first;
    event.launched -= first;
  }
  for (std::vector<TraceWindow>* windows : {&trace_.steps, &trace_.updates}) {
    for (TraceWindow& window : *windows) {
      window.start -= first;
      window.end -= first;
    }
  }
  return std::move(trace_);
}

}  // namespace zeroplan
