// How is an answer taken apart for programs? Front door: explain_json.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/explain/explain_report.hpp"
#include "cli/out/report_fields.hpp"
#include "cost_model/explain/sources.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json seconds_or_null(double seconds) {
  return std::isfinite(seconds) ? Json(seconds) : Json();
}

Json part_json(const ExplainedPart& part) {
  Json terms = Json::array();
  for (const ExplainedTerm& t : part.terms) {
    terms.push_back({{"what", t.what},
                     {"formula", text_or_null(t.symbols)},
                     {"numbers", text_or_null(t.numbers)},
                     {"bytes", t.bytes.count()}});
  }
  return {{"name", part.name},
          {"count", part.count},
          {"bytes_each", part.each.count()},
          {"bytes", part.total().count()},
          {"formula", text_or_null(part.symbols)},
          {"numbers", text_or_null(part.numbers)},
          {"terms", terms}};
}

Json row_json(const ExplainedRow& row) {
  Json parts = Json::array();
  for (const ExplainedPart& part : row.parts) parts.push_back(part_json(part));
  return {{"row", name_of(row.category)},
          {"bytes", row.bytes.count()},
          {"parts", parts},
          {"source", row.source}};
}

Json weights_json(const Explanation& e) {
  if (e.weights.empty()) return {};
  Json list = Json::array();
  for (const ExplainedWeight& w : e.weights) {
    list.push_back({{"name", w.name},
                    {"block", w.block},
                    {"count", w.count},
                    {"rows", w.each.rows},
                    {"columns", w.each.columns},
                    {"copies", w.each.copies},
                    {"elements", w.count * w.each.elements()}});
  }
  return {{"elements", e.elements}, {"padding", e.padding}, {"weights", list}};
}

Json loads_json(const ExplainedAnswer& a) {
  Json list = Json::array();
  for (std::size_t i = 0; i < a.explanation.loads.size(); ++i) {
    const ExplainedLoad& e = a.explanation.loads[i];
    list.push_back({{"group", e.load.group.name},
                    {"ranks", e.load.group.ranks},
                    {"collective", name_of(e.load.collective)},
                    {"during", name_of(e.load.during)},
                    {"calls", e.load.calls},
                    {"payload_bytes", e.load.payload.count()},
                    {"formula", text_or_null(e.symbols)},
                    {"numbers", text_or_null(e.numbers)},
                    {"factor", e.factor},
                    {"sent_bytes_per_gpu", e.sent.count()},
                    {"seconds", seconds_or_null(a.timed()[i].seconds)},
                    {"exposed_seconds", seconds_or_null(a.timed()[i].exposed)}});
    if (const auto slowest = bottleneck_of(a.answer.problem, e.load)) {
      list.back()["bottleneck"] = bottleneck_json(*slowest);
    }
    add_shared(list.back(), shared_uplinks(a.answer.problem, a.timed(), a.timed()[i]));
  }
  return {{"collectives", list}, {"source", source_of_communication(a.answer.problem)}};
}

Json flops_json(const ExplainedAnswer& a) {
  const StepFlops step = step_flops(a.answer.problem);
  Json list = Json::array();
  for (const FlopTerm& t : a.explanation.flops) {
    list.push_back({{"what", t.what},
                    {"count", t.count},
                    {"forward_flops_per_sample", t.forward},
                    {"repeated_flops_per_sample", t.repeated}});
  }
  return {{"samples", a.answer.problem.training.global_batch},
          {"terms", list},
          {"attention_flops", name_of(a.answer.problem.training.scores)},
          {"model_flops", step.model},
          {"hardware_flops", step.hardware},
          {"model_flops_by_attention",
           {{"causal", step_flops(a.answer.problem, ScoreCount::causal).model},
            {"whole", step_flops(a.answer.problem, ScoreCount::whole).model}}},
          {"source", source_of_flops()}};
}

Json step_json(const FitAnswer& answer) {
  const StepTime& t = answer.step;
  if (!has_time(answer.problem, t)) return nullptr;
  return {{"seconds", seconds_or_null(t.seconds)},
          {"compute_seconds", seconds_or_null(t.computed)},
          {"communication_exposed_seconds", seconds_or_null(t.exposed)},
          {"bubble_seconds", seconds_or_null(t.bubble)}};
}

// A cell that may hold commas.
std::string quoted(const std::string& text) {
  return text.find(',') == std::string::npos ? text : fmt::format("\"{}\"", text);
}

}  // namespace

std::vector<std::string> explained_rows() {
  std::vector<std::string> rows(names<Category>().begin(), names<Category>().end());
  rows.insert(rows.end(), {"weights", "communication", "flops", "step"});
  return rows;
}

std::string explain_json(const ExplainedAnswer& a) {
  const Problem& p = a.answer.problem;
  const StageMemory& m = a.memory;
  Json out;
  out["schema"] = "zeroplan.explain/1";
  out["model"] = p.model.name;
  out["runtime"] = *code_of(p).name;
  out["stage"] = m.stage;
  out["phase"] = name_of(m.phase);
  out["tensor"] = m.tensor;
  out["device_bytes"] = m.memory.device().count();
  out["symbols"] = Json::array();
  for (const Symbol& s : a.explanation.symbols) {
    out["symbols"].push_back({{"symbol", s.name}, {"value", s.value}, {"meaning", s.meaning}});
  }
  out["rows"] = Json::array();
  for (const ExplainedRow& row : a.explanation.rows) {
    if (a.wants(name_of(row.category))) out["rows"].push_back(row_json(row));
  }
  if (a.wants("weights")) out["weights"] = weights_json(a.explanation);
  if (a.wants("communication")) out["communication"] = loads_json(a);
  if (a.wants("flops")) out["flops"] = flops_json(a);
  if (a.wants("step")) out["step"] = step_json(a.answer);
  return out.dump(2) + "\n";
}

std::string explain_csv(const ExplainedAnswer& a) {
  std::string out = "row,name,term,count,bytes,formula,numbers\n";
  const auto add = [&](const ExplainedRow& row, const ExplainedPart& part, const std::string& term,
                       const std::string& symbols, const std::string& numbers, Bytes bytes) {
    out += fmt::format("{},{},{},{},{},{},{}\n", name_of(row.category), quoted(part.name),
                       quoted(term), part.count, bytes.count(), symbols, numbers);
  };
  for (const ExplainedRow& row : a.explanation.rows) {
    if (!a.wants(name_of(row.category))) continue;
    for (const ExplainedPart& part : row.parts) {
      if (part.terms.empty()) add(row, part, "", part.symbols, part.numbers, part.total());
      for (const ExplainedTerm& t : part.terms) {
        add(row, part, t.what, t.symbols, t.numbers, part.count * t.bytes);
      }
    }
  }
  return out;
}

}  // namespace zeroplan
