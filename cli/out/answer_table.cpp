// How do several answers compare? Front door: table_text.
#include "cli/out/answer_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/out/cost.hpp"
#include "cli/out/report.hpp"
#include "cli/out/report_fields.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/out/terminal.hpp"
#include "cli/out/text_table.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;
using Cells = std::vector<std::string>;

// "gpus" of --gpus, "model" of MODEL.
std::string heading(const TypedOption& option) {
  return option.flag.starts_with("--") ? option.flag.substr(2) : lower_case(option.flag);
}

Cells headings(const TableRow& row, const std::optional<CostQuestion>& cost) {
  Cells cells;
  for (const TypedOption& option : row.values) cells.push_back(heading(option));
  for (const char* name : {"verdict", "GPUs", "GiB", "free", "tok/s/GPU", "MFU %"}) {
    cells.emplace_back(name);
  }
  if (cost) {
    cells.emplace_back("days");
    cells.emplace_back("GPU hours");
    if (cost->price) cells.emplace_back("money");
  }
  cells.emplace_back("layout");
  return cells;
}

void add_time(Cells& cells, const FitAnswer& a, const std::optional<CostQuestion>& cost) {
  const bool timed = has_time(a.problem, a.step);
  cells.push_back(timed ? fmt::format("{:.0f}", tokens_per_second_per_gpu(a.problem, a.step))
                        : "-");
  cells.push_back(timed ? fmt::format("{:.1f}", 100 * mfu(a.problem, a.step)) : "-");
  if (!cost) return;
  const auto all = cost_of(a, *cost);
  cells.push_back(all ? fmt::format("{:.1f}", all->seconds / seconds_an_hour / hours_a_day) : "-");
  cells.push_back(all ? with_thousands(std::llround(all->gpu_hours)) : "-");
  if (cost->price) cells.push_back(all ? with_thousands(std::llround(*all->money)) : "-");
}

Cells cells_of(const TableRow& row, const std::optional<CostQuestion>& cost) {
  Cells cells;
  for (const TypedOption& option : row.values) cells.push_back(option.value);
  if (!row.answer) {
    cells.emplace_back("refused");
    cells.resize(headings(row, cost).size() - 1, "-");
    cells.push_back(row.refusal);
    return cells;
  }
  const FitAnswer& a = *row.answer;
  cells.push_back(spaced(name_of(a.estimate.verdict)));
  cells.push_back(fmt::format("{}", a.problem.cluster.gpus));
  cells.push_back(fmt::format("{:.2f}", gibibytes(a.estimate.device())));
  cells.push_back(fmt::format("{:.2f}", gibibytes(a.estimate.headroom())));
  add_time(cells, a, cost);
  cells.push_back(layout_text(a.problem));
  return cells;
}

}  // namespace

std::string table_text(const std::vector<TableRow>& rows,
                       const std::optional<CostQuestion>& cost,
                       std::size_t width) {
  const Cells names = headings(rows.front(), cost);
  std::vector<Cells> lines;
  for (const TableRow& row : rows) lines.push_back(cells_of(row, cost));
  TextTable table(rows.front().values.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    Cells column;
    for (const Cells& line : lines) column.push_back(line[i]);
    // The last is the layout, whose length varies most.
    table.add(names[i], std::move(column), i + 1 < names.size() ? Align::right : Align::left);
  }
  return table.text(width);
}

std::string table_json(const std::vector<TableRow>& rows, const std::optional<CostQuestion>& cost) {
  Json out{{"schema", "zeroplan.table/1"}, {"rows", Json::array()}};
  for (const TableRow& row : rows) {
    Json fields{{"options", Json::array()}};
    for (const auto& [flag, value] : row.values) {
      fields["options"].push_back({{"flag", flag}, {"value", value}});
    }
    if (row.answer) {
      fields.update(fit_fields(*row.answer));
      if (cost) fields["training"] = cost_json(*row.answer, *cost);
    } else {
      fields["refused"] = row.refusal;
    }
    out["rows"].push_back(std::move(fields));
  }
  return out.dump(2) + "\n";
}

std::string table_csv(const std::vector<TableRow>& rows) {
  std::string out;
  for (const TypedOption& option : rows.front().values) out += heading(option) + ",";
  out +=
      "verdict,gpus,device_bytes,headroom_bytes,step_seconds,tokens_per_second_per_gpu,mfu,dp,tp,"
      "pp,vpp,cp,ep,zero,micro_batch,recompute\n";
  for (const TableRow& row : rows) {
    for (const TypedOption& option : row.values) out += option.value + ",";
    if (!row.answer) {
      out += "refused,,,,,,,,,,,,,,,\n";
      continue;
    }
    const FitAnswer& a = *row.answer;
    const Problem& p = a.problem;
    const Layout& l = p.layout;
    const bool timed = has_time(p, a.step);
    out +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                    name_of(a.estimate.verdict), p.cluster.gpus, a.estimate.device().count(),
                    a.estimate.headroom().count(), timed ? fmt::format("{}", a.step.seconds) : "",
                    timed ? fmt::format("{}", tokens_per_second_per_gpu(p, a.step)) : "",
                    timed ? fmt::format("{}", mfu(p, a.step)) : "", l.dp, l.tp, l.pp, l.vpp, l.cp,
                    l.ep, name_of(l.zero), l.micro_batch, name_of(l.recompute));
  }
  return out;
}

ExitCode write_table(const std::vector<Variant>& questions,
                     const std::function<std::optional<FitAnswer>(const LayoutArguments&)>& answer,
                     const std::optional<CostQuestion>& cost,
                     const OutputOptions& output) {
  std::vector<TableRow> rows;
  bool some_answered = false;
  bool some_fit = false;
  for (const Variant& variant : questions) {
    TableRow row{.values = variant.values, .answer = std::nullopt, .refusal = ""};
    try {
      row.answer = answer(variant.question);
      some_answered = true;
      if (!row.answer) row.refusal = "nothing fits";
      some_fit |= row.answer && row.answer->estimate.verdict != Verdict::does_not_fit;
    } catch (const InputError& error) {
      row.refusal = error.what();
    }
    rows.push_back(std::move(row));
  }
  if (!some_answered) throw InputError(rows.front().refusal);
  write_in_form(
      output, [&] { return table_json(rows, cost); }, [&] { return table_csv(rows); },
      [&] { return table_text(rows, cost, terminal_width()); });
  return some_fit ? ExitCode::yes : ExitCode::no;
}

}  // namespace zeroplan
