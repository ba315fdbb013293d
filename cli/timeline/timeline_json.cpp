// How is a step written for programs? Front door: timeline_json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/out/report_fields.hpp"
#include "cli/timeline/timeline_report.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr bool is_allocated(Category category) {
  return category < Category::fragmentation;
}

}  // namespace

TimedPass timed_pass(const RankClock& clock, const Pass& pass) {
  const auto found = std::find_if(clock.passes.begin(), clock.passes.end(),
                                  [&](const TimedPass& timed) { return timed.pass == pass; });
  return found == clock.passes.end() ? TimedPass{pass} : *found;
}

std::string timeline_json(const Problem& problem, const RankMemory& memory) {
  const Timeline& timeline = memory.step;
  const Played& highest = timeline.events[timeline.highest];
  Json out;
  out["schema"] = "zeroplan.timeline/1";
  out["model"] = problem.model.name;
  out["runtime"] = *code_of(problem).name;
  out["stage"] = memory.stage;
  out["peak"] = {{"event", timeline.highest},
                 {"phase", name_of(highest.phase)},
                 {"tensor", highest.tensor.name},
                 {"allocated_bytes", timeline.live[timeline.highest].allocated().count()}};
  out["resident_bytes"] = timeline.resident.allocated().count();
  out["phases"] = phase_list(memory.phases);
  out["passes"] = Json::array();
  for (const PassSpan& span : timeline.passes) {
    const TimedPass timed = timed_pass(memory.clock, span.pass);
    out["passes"].push_back({{"direction", name_of(span.pass.kind)},
                             {"chunk", span.pass.chunk},
                             {"micro_batch", span.pass.micro_batch},
                             {"first_event", span.first},
                             {"end_event", span.last},
                             {"start_seconds", timed.start},
                             {"end_seconds", timed.end}});
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

}  // namespace zeroplan
