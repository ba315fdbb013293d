// How is a step shown over time? Front door: timeline_chrome_trace.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/timeline/timeline_report.hpp"
#include "cost_model/network/topology.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr double microseconds = 1e6;

// Perfetto counts whole nanoseconds, and drops a slice that ends one of them after the slice in
// which it begins (src/trace_processor/importers/common/slice_tracker): both ends of all slices
// are rounded alike.
std::int64_t nanosecond_of(double seconds) {
  return std::llround(1e9 * seconds);
}

// In the microseconds of the format, so that Perfetto's cut of 1000 times as much
// (importers/json/json_utils) is that nanosecond.
double microseconds_of(std::int64_t nanoseconds) {
  const double exact = static_cast<double>(nanoseconds) / 1000;
  const bool kept = static_cast<std::int64_t>(exact * 1000) == nanoseconds;
  return kept ? exact : std::nextafter(exact, std::numeric_limits<double>::infinity());
}

double moment(double seconds) {
  return microseconds_of(nanosecond_of(seconds));
}

double duration(double start, double seconds) {
  return microseconds_of(nanosecond_of(start + seconds) - nanosecond_of(start));
}

// One rank's part of the trace.
class RankTrace {
 public:
  // `first_thread`: no number of a process, nor of a thread of another one, from there on.
  RankTrace(const Problem& problem,
            const RankStreams& streams,
            bool every_event,
            std::size_t first_thread,
            Json& out)
      : problem_(problem),
        streams_(streams),
        every_event_(every_event),
        first_thread_(first_thread),
        out_(out) {}

  /// Gives the number of the next thread.
  std::size_t write() {
    write_name("process_name", thread_of("compute"), fmt::format("stage {}", streams_.rank));
    write_passes();
    for (const Slice* slice : in_order()) write_slice(*slice);
    if (every_event_) {
      for (const KernelSlice& kernel : streams_.kernels) write_kernel(kernel);
    }
    for (const auto& [lane, thread] : threads_) {
      const auto& [stream, beside] = lane;
      write_name("thread_name", thread,
                 beside == 0 ? std::string(stream) : fmt::format("{} {}", stream, beside + 1));
    }
    write_memory();
    return first_thread_ + threads_.size();
  }

 private:
  void write_name(const char* what, std::size_t thread, const std::string& name) {
    out_.push_back({{"name", what},
                    {"ph", "M"},
                    {"pid", streams_.rank},
                    {"tid", thread},
                    {"args", {{"name", name}}}});
  }

  std::size_t thread_of(std::string_view stream, std::size_t beside = 0) {
    return threads_.try_emplace({stream, beside}, first_thread_ + threads_.size()).first->second;
  }

  std::vector<const Slice*> in_order() const {
    std::vector<const Slice*> list;
    for (const Slice& slice : streams_.slices) list.push_back(&slice);
    std::ranges::stable_sort(list, {}, &Slice::start);
    return list;
  }

  // What is waited for begins at once, though another call of its group may be under way: a track
  // has one at a time.
  std::size_t thread_of(const Slice& slice) {
    std::vector<double>& free = free_from_[slice.stream];
    const auto idle = std::ranges::find_if(free, [&](double from) { return from <= slice.start; });
    const auto beside = static_cast<std::size_t>(idle - free.begin());
    if (idle == free.end()) free.push_back(0);
    free[beside] = slice.start + slice.seconds;
    return thread_of(slice.stream, beside);
  }

  void write_passes() {
    const bool with_chunk = std::ranges::any_of(
        streams_.clock.passes, [](const TimedPass& t) { return t.pass.chunk > 0; });
    for (std::size_t i = 0; i < streams_.clock.passes.size(); ++i) {
      const TimedPass& timed = streams_.clock.passes[i];
      for (const bool begins : {true, false}) {
        out_.push_back({{"name", pass_name(timed.pass, with_chunk)},
                        {"cat", "pass"},
                        {"ph", begins ? "b" : "e"},
                        {"id", fmt::format("{}.{}", streams_.rank, i)},
                        {"pid", streams_.rank},
                        {"tid", thread_of("compute")},
                        {"ts", moment(begins ? timed.start : timed.end)}});
      }
    }
  }

  void write_slice(const Slice& slice) {
    const bool computes = slice.kind == SliceKind::compute;
    Json event{{"name", slice.name},
               {"cat", name_of(slice.kind)},
               {"ph", "X"},
               {"pid", streams_.rank},
               {"tid", computes ? thread_of(slice.stream) : thread_of(slice)},
               {"ts", moment(slice.start)},
               {"dur", duration(slice.start, slice.seconds)}};
    if (!computes) {
      const CollectiveLoad& load = slice.call.load;
      event["args"] = {{"ranks", load.group.ranks},
                       {"stride", load.group.stride},
                       {"link", link_of(problem_.cluster, load.group)},
                       {"calls", load.calls},
                       {"payload_bytes", load.payload.count()},
                       {"exposed_us", microseconds * slice.exposed},
                       {"beside", name_of(slice.call.behind)}};
    }
    out_.push_back(std::move(event));
  }

  // Within the slice of its block.
  void write_kernel(const KernelSlice& kernel) {
    out_.push_back({{"name", kernel.name()},
                    {"cat", "kernel"},
                    {"ph", "X"},
                    {"pid", streams_.rank},
                    {"tid", thread_of("compute")},
                    {"ts", moment(kernel.start)},
                    {"dur", duration(kernel.start, kernel.seconds)}});
  }

  void write_counter(const MemoryBreakdown& live, double seconds) {
    Json values;
    for (std::size_t c = 0; c < names<Category>().size(); ++c) {
      const auto category = static_cast<Category>(c);
      if (is_allocated(category)) values[std::string(name_of(category))] = live[category].count();
    }
    out_.push_back({{"name", "memory"},
                    {"ph", "C"},
                    {"pid", streams_.rank},
                    {"ts", moment(seconds)},
                    {"args", std::move(values)}});
  }

  // A counter an event, or one a block: its highest moment.
  void write_memory() {
    MemoryBreakdown live = streams_.resident();
    std::optional<std::pair<MemoryBreakdown, double>> highest;
    std::pair<std::int32_t, std::int32_t> place{-1, -1};
    for (const Occurrence& occurrence : streams_.order) {
      if (occurrence.of != Occurrence::Of::tensor) continue;
      const Played& event = streams_.events[occurrence.index];
      live[event.tensor.category] += event.allocates ? event.tensor.bytes : -event.tensor.bytes;
      if (every_event_) {
        write_counter(live, occurrence.seconds);
        continue;
      }
      const std::pair here{event.pass, event.block};
      if (here != place && highest) {
        write_counter(highest->first, highest->second);
        highest.reset();
      }
      place = here;
      if (!highest || live.allocated() > highest->first.allocated()) {
        highest = {live, occurrence.seconds};
      }
    }
    if (highest) write_counter(highest->first, highest->second);
  }

  const Problem& problem_;
  const RankStreams& streams_;
  bool every_event_;
  std::size_t first_thread_;
  Json& out_;
  std::map<std::pair<std::string_view, std::size_t>, std::size_t> threads_;
  std::map<std::string_view, std::vector<double>> free_from_;  // of a stream's tracks
};

}  // namespace

std::string timeline_chrome_trace(const Problem& problem,
                                  const RankMemory& memory,
                                  const std::vector<RankStreams>& streams) {
  Json events = Json::array();
  // Some readers name threads by their number alone, and a process's first thread by its own:
  // Perfetto before its #2278.
  std::size_t thread = 1;
  for (const RankStreams& rank : streams) {
    thread = std::max(thread, static_cast<std::size_t>(rank.rank) + 1);
  }
  for (const RankStreams& rank : streams) {
    thread = RankTrace(problem, rank, rank.rank == memory.stage, thread, events).write();
  }
  return Json{{"traceEvents", std::move(events)},
              {"otherData",
               {{"time", "predicted; kernels divide what a pass computes as they take"},
                {"micro_batches",
                 fmt::format("{} of {}", streams.front().micro_batches, micro_batches(problem))}}}}
             .dump() +
         "\n";
}

}  // namespace zeroplan
