// How is an answer written for programs? Front door: fit_json.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/out/report.hpp"
#include "cli/out/report_fields.hpp"
#include "cli/out/versions.hpp"
#include "cost_model/answer/step_band.hpp"
#include "cost_model/rank/weights.hpp"
#include "presets/runtime.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

Json categories(const MemoryBreakdown& memory) {
  Json out;
  for (std::size_t i = 0; i < names<Category>().size(); ++i) {
    out[std::string(names<Category>()[i])] = memory[static_cast<Category>(i)].count();
  }
  return out;
}

Json layout_json(const Problem& p) {
  const Layout& l = p.layout;
  Json out = degree_fields(l);
  out.update({{"global_batch", p.training.global_batch},
              {"gradient_accumulation", micro_batches(p)},
              {"sequence_length", p.training.sequence_length},
              {"schedule", name_of(l.schedule)},
              {"recompute", name_of(l.recompute)},
              {"precision", name_of(p.training.precision)},
              {"optimizer", name_of(p.training.optimizer)},
              {"attention", name_of(p.training.attention)},
              {"offload", name_of(l.offload)}});
  if (l.hsdp > 0) out["hsdp"] = l.hsdp;
  if (p.training.scores != ScoreCount::causal) out["attention_flops"] = name_of(p.training.scores);
  return out;
}

// What --set would say, the planner's choices included.
Json settings_json(const RuntimeSpec& runtime) {
  Json out = Json::object();
  for (const auto& [key, value] : changed_settings(runtime)) out[key] = value;
  return out;
}

Json stage_json(const StageMemory& s) {
  return {{"stage", s.stage},
          {"layers", s.layers},
          {"phase", name_of(s.phase)},
          {"allocated_bytes", s.memory.allocated().count()},
          {"reserved_bytes", s.memory.reserved().count()},
          {"device_bytes", s.memory.device().count()},
          {"categories", categories(s.memory)}};
}

// What offload keeps on the host, by the stage that keeps most there.
Json host_json(const Estimate& e) {
  const auto most = std::max_element(
      e.stages.begin(), e.stages.end(),
      [](const StageMemory& a, const StageMemory& b) { return a.host.total() < b.host.total(); });
  const HostMemory& host = most->host;
  return {{"bytes_per_node", e.host_a_node.count()},
          {"bytes_per_rank", host.total().count()},
          {"categories",
           {{"parameters", host.parameters.count()},
            {"gradients", host.gradients.count()},
            {"master_parameters", host.master_parameters.count()},
            {"optimizer_states", host.optimizer_states.count()},
            {"activations", host.activations.count()},
            {"staging", host.staging.count()}}}};
}

// Seconds, or null where no network joins the group.
Json seconds_json(double seconds) {
  return std::isfinite(seconds) ? Json(seconds) : Json(nullptr);
}

// The reference beside which a simpler layout is recommended.
Json fastest_json(const FastestLayout& fastest) {
  const auto& [problem, step] = fastest;
  return {{"layout", layout_json(problem)},
          {"settings", settings_json(problem.runtime)},
          {"step_seconds", step.seconds},
          {"tokens_per_second_per_gpu", tokens_per_second_per_gpu(problem, step)}};
}

// The layout of the answer with its ranks on other nodes.
Json placement_json(const BetterPlacement& better) {
  return {
      {"together", better.what}, {"step_seconds", better.step_seconds}, {"nodes", better.nodes}};
}

// What a rank of one stage sends in a step.
Json communication_json(const Problem& problem, const StageTime& stage) {
  Json rows = Json::array();
  for (const TimedLoad& timed : stage.loads) {
    const CollectiveLoad& load = timed.load;
    rows.push_back({{"group", load.group.name},
                    {"ranks", load.group.ranks},
                    {"collective", name_of(load.collective)},
                    {"during", name_of(load.during)},
                    {"calls", load.calls},
                    {"payload_bytes", load.payload.count()},
                    {"sent_bytes_per_gpu", sent_bytes_per_step(load).count()},
                    {"seconds", seconds_json(timed.seconds)},
                    {"exposed_seconds", seconds_json(timed.exposed)}});
    if (const auto slowest = bottleneck_of(problem, load)) {
      rows.back()["bottleneck"] = bottleneck_json(*slowest);
    }
    add_shared(rows.back(), shared_uplinks(problem, stage.loads, timed));
  }
  return rows;
}

Json step_json(const Problem& p, const StepTime& step) {
  if (!has_time(p, step)) return nullptr;
  const double half = step_band(p).half_width * step.seconds;
  return {{"seconds", step.seconds},
          {"seconds_low", step.seconds - half},
          {"seconds_high", step.seconds + half},
          {"compute_seconds", step.computed},
          {"communication_exposed_seconds", step.exposed},
          {"bubble_seconds", step.bubble},
          {"bubble_fraction", step.bubble_fraction()},
          {"straggling_seconds", step.straggling},
          {"optimizer_seconds", step.optimizer},
          {"model_flops", step.flops.model},
          {"hardware_flops", step.flops.hardware},
          {"attention_flops", name_of(p.training.scores)},
          {"mfu", mfu(p, step)},
          {"hfu", hfu(p, step)},
          {"tflops_per_gpu", tflops_per_gpu(p, step)},
          {"tokens_per_second_per_gpu", tokens_per_second_per_gpu(p, step)}};
}

}  // namespace

bool has_time(const Problem& problem, const StepTime& step) {
  return std::isfinite(step.seconds) && problem.model.layers > 0;
}

nlohmann::ordered_json bottleneck_json(const Bottleneck& slowest) {
  return {{"link", slowest.name},
          {"bytes_per_second", slowest.capacity},
          {"groups", slowest.groups},
          {"bytes_per_second_each", slowest.share}};
}

void add_shared(nlohmann::ordered_json& row, const std::vector<SharedUplink>& shared) {
  for (const auto& [other, demand] : shared) {
    row["shared"].push_back({{"group", other->group.name},
                             {"collective", name_of(other->collective)},
                             {"during", name_of(other->during)},
                             {"link", demand->name},
                             {"bytes_per_second", demand->capacity},
                             {"demand", demand->part}});
  }
}

nlohmann::ordered_json degree_fields(const Layout& layout) {
  return {{"dp", layout.dp},
          {"tp", layout.tp},
          {"pp", layout.pp},
          {"vpp", layout.vpp},
          {"cp", layout.cp},
          {"ep", layout.ep},
          {"etp", layout.etp},
          {"zero", static_cast<int>(layout.zero)},
          {"sequence_parallel", layout.sequence_parallel},
          {"micro_batch", layout.micro_batch}};
}

nlohmann::ordered_json phase_list(const std::vector<PhasePeak>& phases) {
  Json list = Json::array();
  for (const PhasePeak& peak : phases) {
    list.push_back({{"phase", name_of(peak.phase)},
                    {"allocated_bytes", peak.allocated.count()},
                    {"reserved_bytes", peak.reserved.count()},
                    {"tensor", peak.tensor.empty() ? Json(nullptr) : Json(peak.tensor)}});
  }
  return list;
}

Json nearest_fits_json(const std::vector<NearestFit>& changes) {
  Json list = Json::array();
  for (const NearestFit& n : changes) {
    list.push_back({{"change", n.change},
                    {"device_bytes", n.device.count()},
                    {"step_seconds", seconds_json(n.step_seconds)}});
  }
  return list;
}

nlohmann::ordered_json fit_fields(const FitAnswer& answer) {
  const Problem& p = answer.problem;
  const Estimate& e = answer.estimate;
  const StageMemory& peak = e.peak();
  Json out;
  out["verdict"] = name_of(e.verdict);
  const Origin& origin = answer.origin;
  out["model"] = {{"name", p.model.name}, {"parameters", parameter_count(p.model)}};
  if (!origin.model_config.empty()) out["model"]["config"] = Json::parse(origin.model_config);
  if (!origin.as.empty()) out["model"]["as"] = origin.as;
  out["cluster"] = {{"gpu", p.cluster.gpu.name},
                    {"gpus", p.cluster.gpus},
                    {"gpus_per_node", p.cluster.gpus_per_node}};
  if (!origin.cluster_preset.empty()) out["cluster"]["preset"] = origin.cluster_preset;
  if (!origin.cluster_config.empty()) out["cluster"]["file"] = Json::parse(origin.cluster_config);
  if (origin.margin > Bytes{}) out["cluster"]["margin_bytes"] = origin.margin.count();
  out["runtime"] = *code_of(p).name;
  out["layout"] = layout_json(p);
  out["settings"] = settings_json(p.runtime);
  out["chosen"] = answer.chosen;
  out["capacity_bytes"] = e.capacity.count();
  out["headroom_bytes"] = e.headroom().count();
  out["fit_probability"] = e.fit_probability;
  out["peak"] = {
      {"stage", peak.stage},
      {"phase", name_of(peak.phase)},
      {"tensor", peak.tensor},
      {"allocated_bytes", peak.memory.allocated().count()},
      {"reserved_bytes", peak.memory.reserved().count()},
      {"resumed_reserved_bytes", e.resumed > Bytes{} ? Json(e.resumed.count()) : Json(nullptr)},
      {"device_bytes", peak.memory.device().count()},
      {"device_bytes_low", e.low.count()},
      {"device_bytes_high", e.high.count()}};
  out["phases"] = phase_list(e.phases);
  out["stages"] = Json::array();
  for (const StageMemory& s : e.stages) out["stages"].push_back(stage_json(s));
  out["host"] = host_json(e);
  out["model_states"] = {
      {"parameters_bytes", peak.states.parameters.count()},
      {"gradients_bytes", peak.states.gradients.count()},
      {"optimizer_bytes", (peak.states.master_parameters + peak.states.optimizer_states).count()}};
  out["communication"] =
      communication_json(p, answer.step.stages.at(static_cast<std::size_t>(peak.stage)));
  out["step"] = step_json(p, answer.step);
  out["assumptions"] = answer.assumptions;
  out["nearest_fits"] = nearest_fits_json(answer.nearest_fits);
  if (answer.fewest_gpus) out["fewest_gpus"] = *answer.fewest_gpus;
  if (answer.placement) out["placement"] = placement_json(*answer.placement);
  if (answer.fastest) out["fastest"] = fastest_json(*answer.fastest);
  return out;
}

Json versions_json() {
  const Versions& own = versions();
  return {{"program", own.program},
          {"presets", own.presets},
          {"constants", own.constants},
          {"corpus", own.corpus}};
}

std::string fit_json(const FitAnswer& answer,
                     const std::optional<CostQuestion>& cost,
                     std::optional<Bytes> host_memory) {
  Json out{{"schema", "zeroplan.fit/1"}};
  out.update(fit_fields(answer));
  if (cost) out["training"] = cost_json(answer, *cost);
  if (host_memory) {
    out["host"]["capacity_bytes_per_node"] = host_memory->count();
    out["host"]["fits"] = answer.estimate.host_a_node <= *host_memory;
  }
  out["versions"] = versions_json();
  return out.dump(2) + "\n";
}

std::string fit_csv(const FitAnswer& answer) {
  std::string out =
      fmt::format("stage,layers,phase,{},device\n", fmt::join(names<Category>(), ","));
  for (const StageMemory& s : answer.estimate.stages) {
    out += fmt::format("{},{},{}", s.stage, s.layers, name_of(s.phase));
    for (std::size_t i = 0; i < names<Category>().size(); ++i) {
      out += fmt::format(",{}", s.memory[static_cast<Category>(i)].count());
    }
    out += fmt::format(",{}\n", s.memory.device().count());
  }
  return out;
}

}  // namespace zeroplan
