// The report as a program reads it. Front door: json.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/accuracy/report.hpp"

namespace zeroplan::accuracy {
namespace {

using Json = nlohmann::ordered_json;

Json family_json(const Family& f) {
  return {{"family", f.family},
          {"runtime", f.runtime},
          {"instrument", f.instrument},
          {"n", f.n},
          {"mean_abs_error", f.mean},
          {"median_abs_error", f.median},
          {"p95_abs_error", f.p95},
          {"max_abs_error", f.max},
          {"bias", f.bias},
          {"in_band", f.in_band},
          {"verdicts_tight", f.tight},
          {"verdicts_wrong", f.verdicts_wrong}};
}

Json families_json(const std::vector<Family>& families) {
  Json out = Json::array();
  for (const Family& family : families) out.push_back(family_json(family));
  return out;
}

Json seconds_json(const Result& r) {
  return {{"id", r.id},
          {"predicted_seconds", r.predicted},
          {"measured_seconds", r.measured},
          {"error", r.error()}};
}

Json bytes_json(const Result& r) {
  return {{"id", r.id},
          {"predicted_bytes", std::llround(r.predicted)},
          {"measured_bytes", std::llround(r.measured)},
          {"error", r.error()}};
}

// Each figure of memory; then what else is known of its row, or of rows without such figures.
Json results_json(const Report& report) {
  Json results = Json::array();
  std::map<std::string, std::size_t> places;  // by row
  for (const Result& result : report.memory) {
    places.emplace(result.id, results.size());
    results.push_back(bytes_json(result));
  }
  const auto of_row = [&](const std::string& id) -> Json& {
    const auto [place, added] = places.emplace(id, results.size());
    if (added) results.push_back({{"id", id}});
    return results[place->second];
  };
  for (const Result& step : report.steps) {
    of_row(step.id).update({{"family", step.family},
                            {"predicted_seconds", step.predicted},
                            {"measured_seconds", step.measured},
                            {"time_error", step.error()},
                            {"measured_mfu", step.mfu},
                            {"time_in_band", step.in_band()}});
  }
  for (const Judgement& j : report.judgements) {
    of_row(j.id).update({{"verdict", name_of(j.verdict)},
                         {"device_bytes", j.needed.count()},
                         {"device_bytes_high", j.at_most.count()},
                         {"capacity_bytes", j.capacity.count()}});
  }
  return results;
}

}  // namespace

std::string json(const Report& report) {
  Json skipped = Json::object();
  for (const auto& [reason, count] : report.skipped) skipped[reason] = count;
  Json steps = Json::array();
  for (const Result& result : report.steps) steps.push_back(seconds_json(result));
  const Json document{
      {"rows", report.rows},
      {"predicted", report.predicted},
      {"skipped", skipped},
      {"families", families_json(report.memory_families)},
      {"throughput", families_json(report.step_families)},
      {"verdicts", {{"right", report.right_verdicts()}, {"wrong", report.wrong_verdicts()}}},
      {"results", results_json(report)},
      {"throughput_results", steps}};
  return document.dump(2) + '\n';
}

}  // namespace zeroplan::accuracy
