// How is a step told to programs? Front doors: story_json, story_csv.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/out/report.hpp"
#include "cli/story/story_report.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

Json tensors_json(const std::vector<NamedTensors>& list) {
  Json out = Json::array();
  for (const NamedTensors& tensors : list) {
    out.push_back({{"name", tensors.name},
                   {"category", name_of(tensors.category)},
                   {"count", tensors.count},
                   {"bytes", tensors.bytes.count()}});
  }
  return out;
}

Json calls_json(const std::vector<TimedLoad>& calls) {
  Json out = Json::array();
  for (const TimedLoad& call : calls) {
    const CollectiveLoad& load = call.load;
    out.push_back({{"group", load.group.name},
                   {"collective", name_of(load.collective)},
                   {"ranks", load.group.ranks},
                   {"calls", load.calls},
                   {"payload_bytes", load.payload.count()},
                   {"sent_bytes_per_gpu", sent_bytes_per_step(load).count()},
                   {"seconds", call.seconds},
                   {"exposed_seconds", call.exposed},
                   {"beside", name_of(call.behind)}});
  }
  return out;
}

std::pair<std::int64_t, Bytes> sum_of(const std::vector<TimedLoad>& calls) {
  std::pair<std::int64_t, Bytes> sum{};
  for (const TimedLoad& call : calls) {
    sum.first += call.load.calls;
    sum.second += sent_bytes_per_step(call.load);
  }
  return sum;
}

// A scene as one of its blocks has it, but for memory and the number of blocks.
Json scene_json(const StoryScene& scene) {
  return {{"first", scene.first},
          {"last", scene.last},
          {"blocks", scene.blocks},
          {"calls", calls_json(scene.calls)},
          {"keeps", tensors_json(scene.kept)},
          {"drops", tensors_json(scene.freed)},
          {"seconds", scene.seconds / static_cast<double>(scene.blocks)},
          {"highest_bytes", scene.highest.count()},
          {"after_bytes", scene.after.count()}};
}

Json phase_json(const Story& story, const StoryPhase& phase) {
  Json scenes = Json::array();
  for (const StoryScene& scene : phase.scenes) scenes.push_back(scene_json(scene));
  return {{"name", phase.name},
          {"kind", phase.ends_step ? "step" : name_of(phase.kind)},
          {"as", phase.alike ? Json(story.phases[*phase.alike].name) : Json()},
          {"like", phase.like ? Json(story.phases[*phase.like].name) : Json()},
          {"after_bytes", phase.after.count()},
          {"calls", calls_json(phase.calls)},
          {"blocks", std::move(scenes)}};
}

}  // namespace

std::string story_json(const FitAnswer& answer, const Story& story) {
  Json out{
      {"schema", "zeroplan.story/1"},
      {"model", answer.problem.model.name},
      {"runtime", *code_of(answer.problem).name},
      {"stage", story.stage},
      {"micro_batches", {{"told", story.micro_batches}, {"all", micro_batches(answer.problem)}}}};
  out["groups"] = Json::array();
  for (const StoryGroup& of : story.groups) {
    out["groups"].push_back({{"group", of.group.name}, {"ranks", of.members}, {"link", of.link}});
  }
  out["holds"] = tensors_json(story.held);
  out["phases"] = Json::array();
  for (const StoryPhase& phase : story.phases) out["phases"].push_back(phase_json(story, phase));
  out["reasons"] = story.reasons;
  return out.dump() + "\n";
}

std::string story_csv(const Story& story) {
  std::string out = "pass,first,last,blocks,calls,sent_bytes,seconds,highest_bytes,after_bytes\n";
  for (const StoryPhase& phase : story.phases) {
    if (!phase.calls.empty()) {
      const auto [calls, sent] = sum_of(phase.calls);
      out += fmt::format("{},all along,all along,0,{},{},,,{}\n", phase.name, calls, sent.count(),
                         phase.after.count());
    }
    for (const StoryScene& scene : phase.scenes) {
      const auto [calls, sent] = sum_of(scene.calls);
      out += fmt::format("{},{},{},{},{},{},{:.9g},{},{}\n", phase.name, scene.first, scene.last,
                         scene.blocks, calls, sent.count(),
                         scene.seconds / static_cast<double>(scene.blocks), scene.highest.count(),
                         scene.after.count());
    }
  }
  return out;
}

}  // namespace zeroplan
