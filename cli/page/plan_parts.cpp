// What is drawn of a plan? Front door: plan_parts.
#include "cli/page/plan_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/out/report_fields.hpp"
#include "cli/page/typed_line.hpp"
#include "cost_model/answer/step_clock.hpp"
#include "cost_model/explain/bottlenecks.hpp"
#include "cost_model/network/topology.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/program/timeline.hpp"
#include "presets/configuration.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_moments = 400;

Json links_json(const FitAnswer& answer) {
  const Problem& p = answer.problem;
  Json list = Json::array();
  const auto stage = static_cast<std::size_t>(answer.estimate.peak().stage);
  for (const TimedLoad& timed : answer.step.stages.at(stage).loads) {
    const CommunicationGroup placed = placement(p.cluster, timed.load.group);
    const bool leaves = nodes_of(placed) > 1;
    const auto slowest = bottleneck_of(p, timed.load);
    list.push_back({{"link", link_of(p.cluster, timed.load.group)},
                    {"bytes_per_second", slowest  ? slowest->share
                                         : leaves ? placed.inter_node_bandwidth
                                                  : placed.intra_node_bandwidth}});
  }
  return list;
}

Json live_json(const Timeline& timeline) {
  struct Total {
    std::int64_t count = 0;
    Bytes bytes;
  };
  std::map<std::pair<std::string_view, Category>, Total> by_name;
  for (const LiveTensors& tensors : live_at_highest(timeline)) {
    Total& total = by_name[{tensors.name, tensors.category}];
    total.count += tensors.count;
    total.bytes += tensors.total();
  }
  std::vector<std::pair<std::pair<std::string_view, Category>, Total>> sorted(by_name.begin(),
                                                                              by_name.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  Json list = Json::array();
  for (const auto& [key, total] : sorted) {
    list.push_back({{"name", key.first},
                    {"category", name_of(key.second)},
                    {"count", total.count},
                    {"bytes", total.bytes.count()}});
  }
  return list;
}

// Memory along the step: of so many events in a row the one with most memory stands for all.
Json moments_json(const Timeline& timeline) {
  const std::size_t events = timeline.live.size();
  const std::size_t columns = std::min(events, most_moments);
  Json list = Json::array();
  for (std::size_t column = 0; column < columns; ++column) {
    const auto first =
        timeline.live.begin() + static_cast<std::ptrdiff_t>(column * events / columns);
    const auto end =
        timeline.live.begin() + static_cast<std::ptrdiff_t>((column + 1) * events / columns);
    const auto most =
        std::max_element(first, end, [](const MemoryBreakdown& a, const MemoryBreakdown& b) {
          return a.allocated() < b.allocated();
        });
    Json values = Json::object();
    for (std::size_t i = 0; i < names<Category>().size(); ++i) {
      const auto category = static_cast<Category>(i);
      if (category >= Category::fragmentation) continue;  // not of one tensor
      values[std::string(name_of(category))] = (*most)[category].count();
    }
    list.push_back({{"event", most - timeline.live.begin()},
                    {"allocated_bytes", most->allocated().count()},
                    {"categories", std::move(values)}});
  }
  return list;
}

Json moves_json(const FitAnswer& answer) {
  const Problem& p = answer.problem;
  const std::size_t index = answer.estimate.worst;
  const auto rank = static_cast<std::int64_t>(index);
  const Evaluator evaluator(p);
  const Stage stage = stages(p)[index];
  const StageProgram program = evaluator.stage_program(p, stage);
  const std::vector<Pass> order = representative_passes(p, rank);
  const Timeline played = timeline(program, order);
  if (played.live.empty()) return nullptr;
  const bool chunks = has_chunks(played);
  Json passes = Json::array();
  for (const PassSpan& span : played.passes) {
    passes.push_back({{"name", pass_name(span.pass, chunks)},
                      {"first_event", span.first},
                      {"end_event", span.last}});
  }
  return {{"stage", index},
          {"micro_batches", representative_micro_batches(p, rank)},
          {"events", played.live.size()},
          {"peak_event", played.highest},
          {"peak_bytes", played.live[played.highest].allocated().count()},
          {"peak_tensor", played.events[played.highest].tensor.name},
          {"resident_bytes", played.resident.allocated().count()},
          {"passes", std::move(passes)},
          {"moments", moments_json(played)},
          {"live", live_json(played)}};
}

Json schedule_json(const FitAnswer& answer) {
  const Problem& p = answer.problem;
  if (!has_time(p, answer.step)) return nullptr;
  const std::int64_t shown = representative_micro_batches(p, 0);
  Json ranks = Json::array();
  double end = 0;
  for (std::int64_t rank = 0; rank < p.layout.pp; ++rank) {
    const RankClock clock = rank_clock(p, answer.step, rank, shown);
    Json passes = Json::array();
    for (const TimedPass& timed : clock.passes) {
      passes.push_back({{"kind", name_of(timed.pass.kind)},
                        {"chunk", timed.pass.chunk},
                        {"micro_batch", timed.pass.micro_batch},
                        {"start", timed.start},
                        {"end", timed.end}});
    }
    end = std::max(end, clock.gathered);
    ranks.push_back({{"rank", rank},
                     {"passes", std::move(passes)},
                     {"passed", clock.passed()},
                     {"reduced", clock.reduced},
                     {"updated", clock.updated},
                     {"gathered", clock.gathered}});
  }
  return {{"micro_batches", shown}, {"seconds", end}, {"ranks", std::move(ranks)}};
}

Json launch_json(const FitAnswer& answer) {
  const auto formats = formats_of(answer.problem.runtime);
  if (formats.empty()) return nullptr;
  const ExportedConfiguration written = export_configuration(answer.problem, formats.front());
  Json unsaid = Json::array();
  for (const auto& [flag, value] : written.unsaid) unsaid.push_back(flag + " " + value);
  return {{"format", name_of(formats.front())}, {"text", written.text}, {"unsaid", unsaid}};
}

}  // namespace

Json plan_parts(const FitAnswer& answer, const LayoutArguments& asked) {
  const bool sized = answer.problem.model.layers == 0;  // a size alone does nothing in a step
  return {{"links", sized ? Json::array() : links_json(answer)},
          {"moves", sized ? Json(nullptr) : moves_json(answer)},
          {"schedule", schedule_json(answer)},
          {"launch", sized ? Json(nullptr) : launch_json(answer)},
          {"command", command_of(answer, asked)}};
}

}  // namespace zeroplan
