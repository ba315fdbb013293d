// How is a validation written for programs? Front door: validate_json.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/validate/validate_report.hpp"

namespace zeroplan {
namespace {

using engine::ComparedCalls;
using engine::ComparedRank;
using engine::ComparedStage;
using Json = nlohmann::ordered_json;

Json compared(Bytes predicted, Bytes measured) {
  return {{"predicted", predicted.count()},
          {"measured", measured.count()},
          {"difference", (measured - predicted).count()}};
}

Json call(const ComparedCalls& c) {
  return {{"group", c.group},
          {"collective", name_of(c.collective)},
          {"payload_bytes", c.payload.count()},
          {"predicted_calls", c.predicted},
          {"measured_calls", c.measured},
          {"predicted_sent_bytes", c.sent(c.predicted).count()},
          {"measured_sent_bytes", c.sent(c.measured).count()}};
}

Json compared_json(const ComparedRank& rank) {
  Json categories;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Category::fragmentation); ++i) {
    const auto category = static_cast<Category>(i);
    categories[std::string(name_of(category))] =
        compared(rank.predicted.live[category], rank.measured.live[category]);
  }
  Json calls = Json::array();
  for (const ComparedCalls& c : rank.calls) calls.push_back(call(c));
  return {{"stage", rank.place.pp},
          {"dp_rank", rank.place.dp},
          {"tp_rank", rank.place.tp},
          {"phase", name_of(rank.measured.phase)},
          {"tensor", rank.measured.tensor},
          {"allocated_bytes",
           compared(rank.predicted.live.allocated(), rank.measured.live.allocated())},
          {"categories", categories},
          {"calls", calls}};
}

Json layout_json(const Problem& p) {
  const Layout& l = p.layout;
  return {{"dp", l.dp},
          {"tp", l.tp},
          {"pp", l.pp},
          {"zero", static_cast<int>(l.zero)},
          {"sequence_parallel", l.sequence_parallel},
          {"micro_batch", l.micro_batch},
          {"global_batch", p.training.global_batch},
          {"sequence_length", p.training.sequence_length},
          {"schedule", name_of(l.schedule)},
          {"recompute", name_of(l.recompute)},
          {"layers", p.model.layers},
          {"hidden_size", p.model.hidden_size}};
}

Json ranks_json(const std::vector<ComparedRank>& ranks) {
  Json list = Json::array();
  for (const ComparedRank& rank : ranks) list.push_back(compared_json(rank));
  return list;
}

Json beside(bool told, double predicted, double measured) {
  return {{"predicted_seconds", told ? Json(predicted) : Json()}, {"measured_seconds", measured}};
}

Json time_json(const MeasuredOn& where) {
  if (!where.time) return {};
  const engine::ComparedSeconds& time = *where.time;
  const bool all = where.predicted == Predicted::everything;
  const bool products = where.predicted != Predicted::nothing;
  Json calls = Json::array();
  for (const auto& [kind, measured] : time.measured.calls) {
    const auto& [group, collective, payload] = kind;
    const auto found = time.predicted.calls.find(kind);
    const engine::CallSeconds predicted =
        found == time.predicted.calls.end() ? engine::CallSeconds{} : found->second;
    Json call{{"group", group},
              {"collective", name_of(collective)},
              {"payload_bytes", payload},
              {"calls", measured.calls}};
    call.update(beside(all, predicted.seconds, measured.seconds));
    call["predicted_exposed_seconds"] = all ? Json(predicted.exposed) : Json();
    call["measured_exposed_seconds"] = measured.exposed;
    calls.push_back(call);
  }
  Json of_products = beside(products, time.predicted.products, time.measured.products);
  of_products["flops"] = time.measured.flops;
  of_products["speed"] = products ? Json(time.product_speed()) : Json();
  of_products["tells_health"] = products && time.tells_health();
  const auto ratio = [&](double predicted, double measured) {
    return Json{{"predicted", all ? Json(predicted) : Json()},
                {"measured", all ? Json(measured) : Json()}};
  };
  return {{"stage", time.place.pp},
          {"dp_rank", time.place.dp},
          {"tp_rank", time.place.tp},
          {"step", beside(all, time.predicted.step, time.measured.step)},
          {"products", of_products},
          {"calls", calls},
          {"hidden", ratio(time.hidden(time.predicted), time.hidden(time.measured))},
          {"mfu", ratio(time.mfu(time.predicted), time.mfu(time.measured))}};
}

Json devices_json(const MeasuredOn& where) {
  Json list = Json::array();
  for (const engine::Closing& c : where.closings) {
    list.push_back({{"used_bytes", c.used.count()},
                    {"tensors_bytes", c.tensors.count()},
                    {"context_bytes", c.context.count()},
                    {"modules_bytes", c.modules.count()},
                    {"cublas_bytes", c.products.count()},
                    {"nccl_bytes", c.communicators.count()},
                    {"pages_bytes", c.pages.count()},
                    {"pool_bytes", c.pool.count()},
                    {"unaccounted_bytes", c.unaccounted().count()},
                    {"allowed_bytes", c.allowed().count()}});
  }
  return list;
}

void add_rows(std::string& out, const ComparedRank& rank) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Category::fragmentation); ++i) {
    const auto category = static_cast<Category>(i);
    const Bytes predicted = rank.predicted.live[category];
    const Bytes measured = rank.measured.live[category];
    out += fmt::format("{},{},{},{},{},{},{}\n", rank.place.pp, rank.place.dp, rank.place.tp,
                       name_of(category), predicted.count(), measured.count(),
                       (measured - predicted).count());
  }
}

constexpr std::string_view csv_header =
    "stage,dp_rank,tp_rank,category,predicted,measured,difference\n";

}  // namespace

std::string validate_json(const engine::Validation& v, const MeasuredOn& where) {
  Json stages = Json::array();
  for (const ComparedStage& s : v.stages) {
    stages.push_back({{"zero", static_cast<int>(s.zero)},
                      {"losses_equal", s.losses_equal},
                      {"parameters_equal", s.parameters_equal},
                      {"expected_equal", s.expected}});
  }
  const Json out{{"schema", "zeroplan.validate/1"},
                 {"verdict", v.agrees() && where.closes() ? "agrees" : "differs"},
                 {"backend", where.backend},
                 {"backend_reason", where.reason},
                 {"model", v.full.problem.model.name},
                 {"plan", layout_json(v.full.problem)},
                 {"plan_changes", v.full.changes},
                 {"run", layout_json(v.small.problem)},
                 {"run_changes", v.small.changes},
                 {"ranks", ranks_json(v.ranks)},
                 {"devices", devices_json(where)},
                 {"losses", v.losses},
                 {"stages", stages},
                 {"seconds", v.seconds},
                 {"time", time_json(where)},
                 {"full_plan", ranks_json(v.counted)}};
  return out.dump(2) + "\n";
}

std::string validate_csv(const engine::Validation& v) {
  std::string out(csv_header);
  for (const ComparedRank& rank : v.ranks) add_rows(out, rank);
  return out;
}

std::string rank_json(const engine::Shrunk& full,
                      const ComparedRank& rank,
                      const MeasuredOn& where) {
  const Json out{{"schema", "zeroplan.validate/1"},
                 {"verdict", rank.agrees() && where.closes() ? "agrees" : "differs"},
                 {"backend", where.backend},
                 {"backend_reason", where.reason},
                 {"model", full.problem.model.name},
                 {"plan", layout_json(full.problem)},
                 {"plan_changes", full.changes},
                 {"devices", devices_json(where)},
                 {"time", time_json(where)},
                 {"full_plan", Json::array({compared_json(rank)})}};
  return out.dump(2) + "\n";
}

std::string rank_csv(const ComparedRank& rank) {
  std::string out(csv_header);
  add_rows(out, rank);
  return out;
}

}  // namespace zeroplan
