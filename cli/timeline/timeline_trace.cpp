// How is a step shown over time? Front door: timeline_chrome_trace.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/timeline/timeline_report.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr double microseconds = 1e6;

constexpr bool is_allocated(Category category) {
  return category < Category::fragmentation;
}

// The moment of each event.
class Moments {
 public:
  Moments(const Timeline& timeline, const RankClock& clock)
      : timeline_(timeline), moments_(timeline.events.size()) {
    for (const PassSpan& span : timeline.passes) {
      const TimedPass timed = timed_pass(clock, span.pass);
      spread(static_cast<std::size_t>(span.first), timed.start);  // what is between passes
      spread(static_cast<std::size_t>(span.last), timed.end);
    }
    spread(first_from(Phase::optimizer_step), clock.reduced);
    spread(first_from(Phase::checkpoint), clock.updated);
    spread(moments_.size(), clock.gathered);
  }

  const std::vector<double>& seconds() const { return moments_; }

 private:
  // Of the events that are left, the first of this phase or a later one.
  std::size_t first_from(Phase phase) const {
    const auto first =
        std::find_if(timeline_.events.begin() + static_cast<std::ptrdiff_t>(next_),
                     timeline_.events.end(), [&](const Played& e) { return e.phase >= phase; });
    return static_cast<std::size_t>(first - timeline_.events.begin());
  }

  // The events up to `last`, evenly from the last moment to this one.
  void spread(std::size_t last, double until) {
    const auto count = static_cast<double>(last - next_);
    for (std::size_t i = next_; i < last; ++i) {
      moments_[i] = now_ + (until - now_) * static_cast<double>(i - next_ + 1) / count;
    }
    next_ = last;
    now_ = until;
  }

  const Timeline& timeline_;
  std::vector<double> moments_;
  std::size_t next_ = 0;
  double now_ = 0;
};

Json slice(
    std::int64_t stage, const std::string& name, std::string_view kind, double start, double end) {
  return {{"name", name},
          {"cat", kind},
          {"ph", "X"},
          {"pid", stage},
          {"tid", 0},
          {"ts", microseconds * start},
          {"dur", microseconds * (end - start)}};
}

}  // namespace

std::string timeline_chrome_trace(const Problem& problem, const RankMemory& memory) {
  const Timeline& timeline = memory.step;
  const RankClock& clock = memory.clock;
  Json events = Json::array();
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", memory.stage},
                    {"args", {{"name", fmt::format("stage {}", memory.stage)}}}});
  const bool with_chunk = has_chunks(timeline);
  for (const TimedPass& timed : clock.passes) {
    events.push_back(slice(memory.stage, pass_name(timed.pass, with_chunk),
                           name_of(timed.pass.kind), timed.start, timed.end));
  }
  const auto add = [&](const char* name, double start, double end) {
    if (end > start) events.push_back(slice(memory.stage, name, "update", start, end));
  };
  add("gradients reduced, ranks awaited", clock.passed(), clock.reduced);
  add("optimizer", clock.reduced, clock.updated);
  add("parameters gathered", clock.updated, clock.gathered);
  const Moments moments(timeline, clock);
  for (std::size_t i = 0; i < timeline.live.size(); ++i) {
    Json values;
    for (std::size_t c = 0; c < names<Category>().size(); ++c) {
      const auto category = static_cast<Category>(c);
      if (is_allocated(category))
        values[std::string(name_of(category))] = timeline.live[i][category].count();
    }
    events.push_back({{"name", "memory"},
                      {"ph", "C"},
                      {"pid", memory.stage},
                      {"ts", microseconds * moments.seconds()[i]},
                      {"args", std::move(values)}});
  }
  return Json{{"traceEvents", std::move(events)},
              {"otherData",
               {{"time", "predicted; what is allocated in a pass is spread evenly over it"},
                {"micro_batches",
                 fmt::format("{} of {}", memory.micro_batches, micro_batches(problem))}}}}
             .dump() +
         "\n";
}

}  // namespace zeroplan
