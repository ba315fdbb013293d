// How is a step shown over time? Front door: timeline_chrome_trace.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/timeline/timeline_report.hpp"
#include "cost_model/network/topology.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr double microseconds = 1e6;

// One rank's part of the trace.
class RankTrace {
 public:
  RankTrace(const Problem& problem, const RankStreams& streams, bool every_event, Json& out)
      : problem_(problem), streams_(streams), every_event_(every_event), out_(out) {}

  void write() {
    write_name("process_name", 0, fmt::format("stage {}", streams_.rank));
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
    return threads_.try_emplace({stream, beside}, threads_.size()).first->second;
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
                        {"ts", microseconds * (begins ? timed.start : timed.end)}});
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
               {"ts", microseconds * slice.start},
               {"dur", microseconds * slice.seconds}};
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
                    {"ts", microseconds * kernel.start},
                    {"dur", microseconds * kernel.seconds}});
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
                    {"ts", microseconds * seconds},
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
  Json& out_;
  std::map<std::pair<std::string_view, std::size_t>, std::size_t> threads_;
  std::map<std::string_view, std::vector<double>> free_from_;  // of a stream's tracks
};

}  // namespace

std::string timeline_chrome_trace(const Problem& problem,
                                  const RankMemory& memory,
                                  const std::vector<RankStreams>& streams) {
  Json events = Json::array();
  for (const RankStreams& rank : streams) {
    RankTrace(problem, rank, rank.rank == memory.stage, events).write();
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
