// The report as a program reads it. Front door: json.
#include <cmath>
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
          {"bias", f.bias}};
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

}  // namespace

std::string json(const Report& report) {
  Json skipped = Json::object();
  for (const auto& [reason, count] : report.skipped) skipped[reason] = count;
  Json results = Json::array();
  for (const Result& result : report.memory) results.push_back(bytes_json(result));
  Json steps = Json::array();
  for (const Result& result : report.steps) steps.push_back(seconds_json(result));
  const Json document{
      {"rows", report.rows},
      {"predicted", report.predicted},
      {"skipped", skipped},
      {"families", families_json(report.memory_families)},
      {"throughput", families_json(report.step_families)},
      {"verdicts", {{"right", report.right_verdicts()}, {"wrong", report.wrong_verdicts()}}},
      {"results", results},
      {"throughput_results", steps}};
  return document.dump(2) + '\n';
}

}  // namespace zeroplan::accuracy
