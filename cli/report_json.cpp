// How is an answer written for programs? Front door: fit_json.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/report.hpp"
#include "cost_model/communication/collective_time.hpp"
#include "cost_model/communication/topology.hpp"
#include "cost_model/communication/volume.hpp"
#include "cost_model/weights.hpp"

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
  return {{"dp", l.dp},
          {"tp", l.tp},
          {"pp", l.pp},
          {"vpp", l.vpp},
          {"cp", l.cp},
          {"ep", l.ep},
          {"etp", l.etp},
          {"zero", static_cast<int>(l.zero)},
          {"sequence_parallel", l.sequence_parallel},
          {"micro_batch", l.micro_batch},
          {"global_batch", p.training.global_batch},
          {"gradient_accumulation", micro_batches(p)},
          {"sequence_length", p.training.sequence_length},
          {"schedule", name_of(l.schedule)},
          {"recompute", name_of(l.recompute)},
          {"precision", name_of(p.training.precision)},
          {"optimizer", name_of(p.training.optimizer)},
          {"attention", name_of(p.training.attention)},
          {"offload", name_of(l.offload)}};
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

// Seconds of all calls one after the other, nothing hidden behind computation; null where no
// network joins the group, or where its ranks do not all find the same links.
Json seconds_json(const Problem& p, const CollectiveLoad& load) {
  if (!is_symmetric(p.cluster, load.group)) return nullptr;
  const CollectiveTime time =
      collective_time(load.collective, symmetric_placement(p.cluster, load.group), load.payload);
  if (!std::isfinite(time.seconds)) return nullptr;
  return static_cast<double>(load.calls) * time.seconds;
}

// What a rank of one stage sends in a step.
Json communication_json(const Problem& p, std::int64_t stage) {
  Json rows = Json::array();
  const std::vector<Stage> all = stages(p);
  for (const CollectiveLoad& load :
       step_collectives(p, weight_inventory(p.model), all.at(static_cast<std::size_t>(stage)))) {
    rows.push_back({{"group", load.group.name},
                    {"ranks", load.group.ranks},
                    {"collective", name_of(load.collective)},
                    {"during", name_of(load.during)},
                    {"calls", load.calls},
                    {"payload_bytes", load.payload.count()},
                    {"sent_bytes_per_gpu", sent_bytes_per_step(load).count()},
                    {"seconds", seconds_json(p, load)},
                    {"exposed_seconds", nullptr}});
  }
  return rows;
}

}  // namespace

std::string fit_json(const FitAnswer& answer) {
  const Problem& p = answer.problem;
  const Estimate& e = answer.estimate;
  const StageMemory& peak = e.peak();
  Json out;
  out["schema"] = "zeroplan.fit/1";
  out["verdict"] = name_of(e.verdict);
  out["model"] = {{"name", p.model.name}, {"parameters", parameter_count(p.model)}};
  out["cluster"] = {{"gpu", p.cluster.gpu.name},
                    {"gpus", p.cluster.gpus},
                    {"gpus_per_node", p.cluster.gpus_per_node}};
  out["runtime"] = name_of(p.runtime.kind);
  out["layout"] = layout_json(p);
  out["chosen"] = answer.chosen;
  out["capacity_bytes"] = e.capacity.count();
  out["headroom_bytes"] = e.headroom().count();
  out["fit_probability"] = e.fit_probability;
  out["peak"] = {{"stage", peak.stage},
                 {"phase", name_of(peak.phase)},
                 {"tensor", peak.tensor},
                 {"allocated_bytes", peak.memory.allocated().count()},
                 {"reserved_bytes", peak.memory.reserved().count()},
                 {"device_bytes", peak.memory.device().count()},
                 {"device_bytes_low", e.low.count()},
                 {"device_bytes_high", e.high.count()}};
  out["stages"] = Json::array();
  for (const StageMemory& s : e.stages) out["stages"].push_back(stage_json(s));
  out["model_states"] = {
      {"parameters_bytes", peak.states.parameters.count()},
      {"gradients_bytes", peak.states.gradients.count()},
      {"optimizer_bytes", (peak.states.master_parameters + peak.states.optimizer_states).count()}};
  out["communication"] = communication_json(p, peak.stage);
  out["step"] = nullptr;
  out["assumptions"] = answer.assumptions;
  out["nearest_fits"] = Json::array();
  for (const NearestFit& n : answer.nearest_fits) {
    out["nearest_fits"].push_back(
        {{"change", n.change}, {"device_bytes", n.device.count()}, {"step_seconds", nullptr}});
  }
  if (answer.fewest_gpus) out["fewest_gpus"] = *answer.fewest_gpus;
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
