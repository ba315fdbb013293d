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

Json result_json(const Result& r) {
  return {{"id", r.id},
          {"predicted_bytes", std::llround(r.predicted)},
          {"measured_bytes", std::llround(r.measured)},
          {"error", r.error()}};
}

}  // namespace

std::string json(const Report& report) {
  Json skipped = Json::object();
  for (const auto& [reason, count] : report.skipped) skipped[reason] = count;
  Json families = Json::array();
  for (const Family& family : report.families) families.push_back(family_json(family));
  Json results = Json::array();
  for (const Result& result : report.results) results.push_back(result_json(result));
  const Json document{
      {"rows", report.rows},
      {"predicted", report.predicted},
      {"skipped", skipped},
      {"families", families},
      {"throughput", Json::array()},
      {"verdicts", {{"right", report.right_verdicts()}, {"wrong", report.wrong_verdicts()}}},
      {"results", results}};
  return document.dump(2) + '\n';
}

}  // namespace zeroplan::accuracy
