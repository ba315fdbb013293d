// How is a step written for programs? Front door: timeline_json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/out/report_fields.hpp"
#include "cli/timeline/timeline_report.hpp"
#include "cost_model/network/topology.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

Json tensor_event(const Played& event, double seconds) {
  return {{"kind", event.allocates ? "allocate" : "free"},
          {"name", event.tensor.name},
          {"bytes", event.tensor.bytes.count()},
          {"category", name_of(event.tensor.category)},
          {"seconds", seconds}};
}

Json slice_event(const Problem& problem, const Slice& slice) {
  const CollectiveLoad& load = slice.call.load;
  Json event{{"kind", name_of(slice.kind)},
             {"name", slice.name},
             {"bytes", (load.calls * load.payload).count()},
             {"category", name_of(slice.kind)},
             {"seconds", slice.start},
             {"duration_seconds", slice.seconds}};
  if (slice.kind == SliceKind::compute) return event;
  event["calls"] = load.calls;
  event["group"] = load.group.name;
  event["ranks"] = load.group.ranks;
  event["link"] = link_of(problem.cluster, load.group);
  event["beside"] = name_of(slice.call.behind);
  event["exposed_seconds"] = slice.exposed;
  return event;
}

Json kernel_event(const KernelSlice& kernel) {
  return {
      {"kind", "kernel"},           {"name", kernel.name()},   {"bytes", 0},
      {"category", "kernel"},       {"seconds", kernel.start}, {"duration_seconds", kernel.seconds},
      {"busy_seconds", kernel.busy}};
}

// In order of time; tensor events among themselves in that of the program.
Json events_of(const Problem& problem, const RankStreams& streams) {
  std::vector<Occurrence> order = streams.order;
  std::ranges::stable_sort(order, {}, &Occurrence::seconds);
  Json events = Json::array();
  for (const auto& [of, index, seconds] : order) {
    events.push_back(of == Occurrence::Of::slice    ? slice_event(problem, streams.slices[index])
                     : of == Occurrence::Of::kernel ? kernel_event(streams.kernels[index])
                                                    : tensor_event(streams.events[index], seconds));
  }
  return events;
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
  const RankClock& clock = memory.streams.clock;
  out["passes"] = Json::array();
  for (const PassSpan& span : timeline.passes) {
    const TimedPass timed = timed_pass(clock, span.pass);
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
  out["events"] = events_of(problem, memory.streams);
  return out.dump() + "\n";
}

}  // namespace zeroplan
