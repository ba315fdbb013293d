// How is a step beside its prediction written for programs? Front door: overlay_json.
#include <nlohmann/json.hpp>

#include "cli/overlay/overlay_report.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t named_kernels = 10;

Json sum_json(const std::optional<WorkSum>& sum, Work work) {
  if (!sum) return nullptr;
  Json out{{"kernels", sum->count}, {"seconds", sum->seconds}};
  if (work == Work::collective) out["exposed_seconds"] = sum->exposed;
  out["longest"] = Json::array();
  for (const NamedWork& named : sum->names) {
    if (out["longest"].size() == named_kernels) break;
    out["longest"].push_back(
        {{"name", named.name}, {"kernels", named.count}, {"seconds", named.seconds}});
  }
  return out;
}

Json predicted_json(const OverlayRow& row) {
  Json out = sum_json(row.predicted, row.work);
  if (row.predicted && row.work == Work::collective) out["added_seconds"] = row.predicted->added;
  return out;
}

Json row_json(const OverlayRow& row) {
  Json out{{"kind", name_of(row.work)}, {"name", row.name}};
  if (row.work == Work::collective) {
    out["collective"] = row.collective ? Json(name_of(*row.collective)) : Json();
    out["group"] = row.group.empty() ? Json() : Json(row.group);
    out["ranks"] = row.ranks > 0 ? Json(row.ranks) : Json();
  }
  out["measured"] = sum_json(row.measured, row.work);
  out["predicted"] = predicted_json(row);
  out["ratio"] = row.ratio() ? Json(*row.ratio()) : Json();
  out["difference_seconds"] = row.difference();
  return out;
}

Json memory_json(const std::optional<MemoryOverlay>& memory) {
  if (!memory) return nullptr;
  Json categories, sizes = Json::array();
  for (const CategoryRow& row : memory->categories) {
    categories[std::string(name_of(row.category))] = {{"predicted_bytes", row.predicted},
                                                      {"held_bytes", row.found}};
  }
  for (const SizeRow& row : memory->sizes) {
    sizes.push_back({{"bytes", row.bytes},
                     {"measured", row.measured},
                     {"predicted", row.predicted},
                     {"difference_bytes", row.difference()},
                     {"tensors", row.tensors},
                     {"holders", row.holders}});
  }
  return {{"measured_peak_bytes", memory->measured},
          {"predicted_peak_bytes", memory->predicted},
          {"reserved_bytes", memory->reserved},
          {"contradicting_events", memory->unmatched},
          {"categories", categories},
          {"sizes", sizes}};
}

Json calibration_json(const std::optional<Calibration>& calibration) {
  if (!calibration) return nullptr;
  return {{"step_seconds", calibration->seconds},
          {"product_speed", calibration->cluster.gpu.product_speed},
          {"memory_speed", calibration->cluster.gpu.memory_speed},
          {"taken", calibration->taken},
          {"left", calibration->left}};
}

}  // namespace

std::string overlay_json(const FitAnswer& answer, const OverlayReport& report) {
  const Overlay& overlay = report.overlay;
  const MeasuredStep& measured = report.measured;
  Json out{{"schema", "zeroplan.overlay/1"},
           {"verdict", name_of(report.verdict)},
           {"model", answer.problem.model.name},
           {"runtime", *code_of(answer.problem).name},
           {"stage", report.stage}};
  out["step"] = {{"measured_seconds", overlay.measured},
                 {"predicted_seconds", overlay.predicted},
                 {"band", report.band},
                 {"name", measured.name.empty() ? Json() : Json(measured.name)},
                 {"steps", measured.steps},
                 {"shortest_seconds", measured.shortest},
                 {"longest_seconds", measured.longest}};
  out["rows"] = Json::array();
  for (const OverlayRow& row : overlay.rows) out["rows"].push_back(row_json(row));
  out["memory"] = memory_json(report.memory);
  out["calibration"] = calibration_json(report.calibration);
  out["notes"] = report.notes;
  out["off_most"] =
      report.verdict == OverlayVerdict::other_device ? Json() : Json(largest_difference(overlay));
  return out.dump() + "\n";
}

}  // namespace zeroplan
