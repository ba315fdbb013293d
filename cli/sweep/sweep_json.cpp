// How is a sweep's answer written for programs? Front door: sweep_json.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/out/report_fields.hpp"
#include "cli/sweep/sweep_report.hpp"
#include "presets/runtime.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

// Empty: as the runtime is set.
Json modules_json(unsigned modules) {
  Json list = Json::array();
  for (std::size_t i = 0; i < names<RecomputeModule>().size(); ++i) {
    if ((modules >> i & 1U) != 0) list.push_back(names<RecomputeModule>()[i]);
  }
  return list;
}

Json departures_json(const Simplicity& simplicity) {
  Json list = Json::array();
  for (std::size_t i = 0; i < names<Departure>().size(); ++i) {
    if (simplicity.departs(static_cast<Departure>(i))) list.push_back(names<Departure>()[i]);
  }
  return list;
}

Json point_json(const Scored& s) {
  const Layout& l = s.layout;
  Json out{{"gpus", s.gpus}};
  out.update(degree_fields(l));
  out.update({{"hsdp", l.hsdp},
              {"schedule", name_of(l.schedule)},
              {"recompute", name_of(l.recompute)},
              {"recompute_layers", l.recompute_layers},
              {"selective_rest", l.selective_rest},
              {"recompute_modules", modules_json(l.recompute_modules)},
              {"offload", name_of(l.offload)},
              {"first_stage", l.first_stage},
              {"last_stage", l.last_stage},
              {"tp_overlap", l.tp_overlap},
              {"overlap", name_of(l.overlap)},
              {"reduce_bucket", l.reduce_bucket},
              {"reshards_all", l.reshards_all},
              {"gathered_layers", l.gathered_layers},
              {"loss_chunks", l.loss_chunks},
              {"step_seconds", s.seconds},
              {"device_bytes", s.device.count()}});
  return out;
}

// As one cell, since keys and values hold commas but no semicolons: KEY=VALUE of each.
std::string settings_text(const RuntimeSpec& runtime) {
  std::vector<std::string> all;
  for (const auto& [key, value] : changed_settings(runtime)) all.push_back(key + "=" + value);
  return all.empty() ? "" : fmt::format("\"{}\"", fmt::join(all, ";"));
}

}  // namespace

std::string sweep_json(const SweepAnswer& answer,
                       const SweepQuestion& question,
                       const std::optional<CostQuestion>& cost) {
  const SearchResult& search = answer.search;
  Json out;
  out["schema"] = "zeroplan.sweep/1";
  out["layouts"] = search.points;
  out["evaluated"] = search.evaluated;
  out["feasible"] = search.feasible;
  out["rejected"] = Json::object();
  for (const auto& [why, count] : search.rejected) out["rejected"][std::string(why)] = count;
  out["seconds"] = answer.seconds;
  out["evaluations_per_second_per_core"] = static_cast<double>(search.evaluated) /
                                           std::max(answer.seconds, 1e-9) /
                                           static_cast<double>(answer.threads);
  out["threads"] = answer.threads;
  if (search.stopped) out["stopped"] = true;
  if (search.refused_when_played > 0) {
    out["refused_by_replay"] = search.refused_when_played;
  }
  if (search.least && answer.plans.empty())
    out["least_device_bytes"] = search.least->device.count();
  if (answer.fewest_gpus) out["fewest_gpus"] = *answer.fewest_gpus;
  if (answer.plans.empty()) out["nearest_fits"] = nearest_fits_json(answer.nearest_fits);
  for (const std::vector<Field>& fields : answer.releases) {
    Json names = Json::array();
    for (const Field field : fields) names.push_back(name_of(field));
    out["release"].push_back(std::move(names));
  }
  out["plans"] = Json::array();
  for (const Plan& plan : answer.plans) {
    Json fields = fit_fields(plan.answer);
    if (cost) fields["training"] = cost_json(plan.answer, *cost);
    fields["equal_to_best"] = plan.equal;
    fields["less_simple_by"] = departures_json(plan.simplicity);
    if (const auto& split = plan.faster_split) {
      fields["faster_split"] = {{"layers", split->partition.sizes},
                                {"slowest_stage_seconds", split->partition.slowest},
                                {"slowest_stage_seconds_now", split->slowest_now}};
    }
    out["plans"].push_back(std::move(fields));
  }
  if (!answer.plans.empty()) out["recommended"] = answer.recommended;
  out["pareto"] = answer.pareto;
  out["versions"] = versions_json();
  if (!question.front && !question.exhaustive) return out.dump(2) + "\n";
  out["front"] = Json::array();
  for (const Scored& s : search.front) out["front"].push_back(point_json(s));
  return out.dump(2) + "\n";
}

std::string sweep_csv(const SweepAnswer& answer) {
  std::string out =
      "gpus,dp,tp,pp,vpp,cp,ep,etp,zero,hsdp,sequence_parallel,micro_batch,schedule,recompute,"
      "recompute_layers,first_stage,last_stage,overlap,"
      "step_seconds,mfu,tokens_per_second_per_gpu,device_bytes,headroom_bytes,verdict,offload,"
      "settings\n";
  for (const Plan& plan : answer.plans) {
    const Problem& p = plan.answer.problem;
    const Layout& l = p.layout;
    const StepTime& step = plan.answer.step;
    const Estimate& e = plan.answer.estimate;
    out += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
        p.cluster.gpus, l.dp, l.tp, l.pp, l.vpp, l.cp, l.ep, l.etp, name_of(l.zero), l.hsdp,
        l.sequence_parallel ? "on" : "off", l.micro_batch, name_of(l.schedule),
        name_of(l.recompute), l.recompute_layers, l.first_stage, l.last_stage, name_of(l.overlap),
        step.seconds, mfu(p, step), tokens_per_second_per_gpu(p, step), e.device().count(),
        e.headroom().count(), name_of(e.verdict), name_of(l.offload), settings_text(p.runtime));
  }
  return out;
}

}  // namespace zeroplan
