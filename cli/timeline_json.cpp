// How is a step written for programs? Front door: timeline_json.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/report_fields.hpp"
#include "cli/timeline_report.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr bool is_allocated(Category category) {
  return category < Category::fragmentation;
}

}  // namespace

std::string timeline_json(const Problem& problem, const RankMemory& memory) {
  const Timeline& timeline = memory.step;
  const Played& highest = timeline.events[timeline.highest];
  Json out;
  out["schema"] = "zeroplan.timeline/1";
  out["model"] = problem.model.name;
  out["runtime"] = name_of(problem.runtime.kind);
  out["stage"] = memory.stage;
  out["peak"] = {{"event", timeline.highest},
                 {"phase", name_of(highest.phase)},
                 {"tensor", highest.tensor.name},
                 {"allocated_bytes", timeline.live[timeline.highest].allocated().count()}};
  out["resident_bytes"] = timeline.resident.allocated().count();
  out["phases"] = phase_list(memory.phases);
  out["passes"] = Json::array();
  for (const PassSpan& span : timeline.passes) {
    out["passes"].push_back({{"direction", name_of(span.pass.kind)},
                             {"chunk", span.pass.chunk},
                             {"micro_batch", span.pass.micro_batch},
                             {"first_event", span.first},
                             {"end_event", span.last}});
  }
  Json total = Json::array();
  for (const MemoryBreakdown& live : timeline.live) total.push_back(live.allocated().count());
  out["allocated_bytes"] = std::move(total);
  for (std::size_t i = 0; i < names<Category>().size(); ++i) {
    const auto category = static_cast<Category>(i);
    if (!is_allocated(category)) continue;
    Json values = Json::array();
    for (const MemoryBreakdown& live : timeline.live) values.push_back(live[category].count());
    out["categories"][std::string(name_of(category))] = std::move(values);
  }
  return out.dump() + "\n";
}

std::string timeline_chrome_trace(std::int64_t stage, const Timeline& timeline) {
  Json events = Json::array();
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", stage},
                    {"args", {{"name", fmt::format("stage {}", stage)}}}});
  const bool with_chunk = has_chunks(timeline);
  for (const PassSpan& span : timeline.passes) {
    events.push_back({{"name", pass_name(span.pass, with_chunk)},
                      {"cat", name_of(span.pass.kind)},
                      {"ph", "X"},
                      {"pid", stage},
                      {"tid", 0},
                      {"ts", span.first},
                      {"dur", span.last - span.first}});
  }
  for (std::size_t i = 0; i < timeline.live.size(); ++i) {
    Json values;
    for (std::size_t c = 0; c < names<Category>().size(); ++c) {
      const auto category = static_cast<Category>(c);
      if (is_allocated(category))
        values[std::string(name_of(category))] = timeline.live[i][category].count();
    }
    events.push_back(
        {{"name", "memory"}, {"ph", "C"}, {"pid", stage}, {"ts", i}, {"args", std::move(values)}});
  }
  return Json{{"traceEvents", std::move(events)},
              {"otherData", {{"time", "one event is one microsecond"}}}}
             .dump() +
         "\n";
}

}  // namespace zeroplan
