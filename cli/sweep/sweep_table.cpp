// How are layouts laid side by side? Front doors: plans_table, front_table.
#include "cli/sweep/sweep_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "cli/out/report.hpp"
#include "cli/out/text_table.hpp"
#include "presets/runtime.hpp"

namespace zeroplan {
namespace {

struct Row {
  Problem problem;
  Scored scored;
  StepTime step;  // of a plan
  std::string mark;
  double slower = 0;  // than the fastest, as a part of its time
  Simplicity simplicity = {};
};

// What it is called, what a row has in it, and the value that needs no column where every row has
// it.
struct Column {
  std::string_view name;
  std::string (*cell)(const Row&);
  std::string_view usual;
};

constexpr std::string_view always_shown = "";

const Layout& layout(const Row& row) {
  return row.problem.layout;
}

std::string gibibytes_text(Bytes bytes) {
  return fmt::format("{:.2f}", gibibytes(bytes));
}

std::string recompute_text(const Row& row) {
  const Layout& l = layout(row);
  if (l.recompute_modules > 0) return setting_text(row.problem.runtime, "recompute_modules");
  if (l.recompute_layers == 0) return std::string(name_of(l.recompute));
  return fmt::format("{} x {}{}", name_of(l.recompute), l.recompute_layers,
                     l.selective_rest ? ", selective" : "");
}

std::string ends_text(const Row& row) {
  const Layout& l = layout(row);
  return l.first_stage > 0 ? fmt::format("{}+{}", l.first_stage, l.last_stage) : "as set";
}

std::string sequence_text(const Row& row) {
  if (!layout(row).sequence_parallel) return "off";
  return layout(row).tp_overlap ? "overlaps" : "on";
}

std::string overlap_text(const Row& row) {
  switch (layout(row).overlap) {
    case Overlap::as_set:
      return "as set";
    case Overlap::gradients:
      return "g";
    case Overlap::parameters:
      break;
  }
  return "g+p";
}

std::string bucket_text(const Row& row) {
  const std::int64_t elements = layout(row).reduce_bucket;
  return elements > 0 ? fmt::format("{:g}", static_cast<double>(elements)) : "as set";
}

std::string chunks_text(const Row& row) {
  const std::int64_t chunks = layout(row).loss_chunks;
  return chunks > 0 ? fmt::format("{}", chunks) : "as set";
}

// Layouts may differ in their global batch, and in GPUs.
std::string tokens_text(const Row& row) {
  const double gpu_seconds = static_cast<double>(row.scored.gpus) * row.scored.seconds_per_token;
  return fmt::format("{:.0f}", 1 / gpu_seconds);
}

std::string departures_text(const Row& row) {
  std::vector<std::string_view> all;
  for (std::size_t i = 0; i < names<Departure>().size(); ++i) {
    if (row.simplicity.departs(static_cast<Departure>(i))) all.push_back(names<Departure>()[i]);
  }
  return all.empty() ? "-" : fmt::format("{}", fmt::join(all, ", "));
}

const Column layout_columns[] = {
    {"GPUs", [](const Row& r) { return fmt::format("{}", r.scored.gpus); }, always_shown},
    {"dp", [](const Row& r) { return fmt::format("{}", layout(r).dp); }, always_shown},
    {"tp", [](const Row& r) { return fmt::format("{}", layout(r).tp); }, always_shown},
    {"pp", [](const Row& r) { return fmt::format("{}", layout(r).pp); }, always_shown},
    {"vpp", [](const Row& r) { return fmt::format("{}", layout(r).vpp); }, "1"},
    {"cp", [](const Row& r) { return fmt::format("{}", layout(r).cp); }, "1"},
    {"ep", [](const Row& r) { return fmt::format("{}", layout(r).ep); }, "1"},
    {"etp", [](const Row& r) { return fmt::format("{}", layout(r).etp); }, "1"},
    {"ZeRO", [](const Row& r) { return std::string(name_of(layout(r).zero)); }, always_shown},
    {"hsdp", [](const Row& r) { return fmt::format("{}", layout(r).hsdp); }, "0"},
    {"sp", sequence_text, "off"},
    {"batch",
     [](const Row& r) {
       return fmt::format("{} x {}", layout(r).micro_batch, micro_batches(r.problem));
     },
     always_shown},
    {"schedule", [](const Row& r) { return std::string(name_of(layout(r).schedule)); }, "1f1b"},
    {"recompute", recompute_text, "none"},
    {"offload", [](const Row& r) { return std::string(name_of(layout(r).offload)); }, "none"},
    {"ends", ends_text, "as set"},
    {"overlap", overlap_text, "as set"},
    {"bucket", bucket_text, "as set"},
    {"reshards",
     [](const Row& r) { return std::string(layout(r).reshards_all ? "all" : "as set"); }, "as set"},
    {"gathered", [](const Row& r) { return fmt::format("{}", layout(r).gathered_layers); }, "0"},
    {"loss chunks", chunks_text, "as set"},
    {"tok/s/GPU", tokens_text, always_shown},
};

const Column step_columns[] = {
    {"slower %", [](const Row& r) { return fmt::format("{:.1f}", 100 * r.slower); }, always_shown},
    {"MFU %", [](const Row& r) { return fmt::format("{:.1f}", 100 * mfu(r.problem, r.step)); },
     always_shown},
    {"bubble %",
     [](const Row& r) {
       return fmt::format("{:.1f}", 100 * std::max(0.0, r.step.bubble_fraction()));
     },
     always_shown},
};

const Column memory_columns[] = {
    {"GiB", [](const Row& r) { return gibibytes_text(r.scored.device); }, always_shown},
    {"free",
     [](const Row& r) { return gibibytes_text(r.problem.cluster.gpu.memory - r.scored.device); },
     always_shown},
};

const Column simplicity_columns[] = {{"less simple by", departures_text, "-"}};

// Without a column in which all have the usual value.
void add(TextTable& table, const std::vector<Row>& rows, std::span<const Column> columns) {
  for (const Column& column : columns) {
    std::vector<std::string> cells;
    for (const Row& row : rows) cells.push_back(column.cell(row));
    const bool plain =
        std::ranges::all_of(cells, [&](const std::string& c) { return c == column.usual; });
    if (!plain) table.add(std::string(column.name), std::move(cells));
  }
}

TextTable marked(const std::vector<Row>& rows) {
  TextTable table(1);
  std::vector<std::string> marks;
  for (const Row& row : rows) marks.push_back(fmt::format("{:>3}", row.mark));
  table.add("", std::move(marks));
  return table;
}

}  // namespace

std::string plans_table(const SweepAnswer& answer, std::size_t width) {
  std::vector<Row> rows;
  double fastest = answer.plans.front().scored.seconds_per_token;
  for (const Plan& plan : answer.plans) fastest = std::min(fastest, plan.scored.seconds_per_token);
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    const Plan& plan = answer.plans[i];
    const char mark = i == answer.recommended ? '*' : plan.equal ? '=' : ' ';
    rows.push_back({.problem = plan.answer.problem,
                    .scored = plan.scored,
                    .step = plan.answer.step,
                    .mark = fmt::format("{}{}", i + 1, mark),
                    .slower = plan.scored.seconds_per_token / fastest - 1,
                    .simplicity = plan.simplicity});
  }
  TextTable table = marked(rows);
  add(table, rows, layout_columns);
  add(table, rows, step_columns);
  add(table, rows, memory_columns);
  add(table, rows, simplicity_columns);
  return table.text(width);
}

std::string front_table(const std::vector<Scored>& front,
                        const SweepQuestion& question,
                        std::size_t width) {
  constexpr std::size_t most_rows = 20;
  const std::size_t count = std::min(front.size(), most_rows);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < count; ++i) {
    // The first and the last are among them.
    const std::size_t at = count > 1 ? i * (front.size() - 1) / (count - 1) : 0;
    rows.push_back({.problem = problem_of(question, front[at]),
                    .scored = front[at],
                    .step = {},
                    .mark = std::string(1, static_cast<char>('a' + i))});
  }
  TextTable table = marked(rows);
  add(table, rows, layout_columns);
  add(table, rows, memory_columns);
  const std::string shown =
      count < front.size() ? fmt::format("{} of the {}", count,
                                         with_thousands(static_cast<std::int64_t>(front.size())))
                           : fmt::format("the {}", count);
  return fmt::format(
      "\n  the front: {} layouts that no other beats in both time and memory, before the allocator "
      "is replayed\n{}",
      shown, table.text(width));
}

}  // namespace zeroplan
