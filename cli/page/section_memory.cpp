// Where does memory go? Front doors: memory_section, zero_section.
#include <fmt/format.h>

#include <algorithm>

#include "cli/out/report.hpp"
#include "cli/page/memory_bars.hpp"
#include "cli/page/numbers.hpp"
#include "cli/page/sections.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_bars = 32;

bool alike(const Json& a, const Json& b) {
  return a.at("layers") == b.at("layers") && a.at("categories") == b.at("categories");
}

// Neighbours that need the same to the byte are one bar.
struct Neighbours {
  std::size_t first, last;
};

std::vector<Neighbours> runs_of(const Json& stages) {
  std::vector<Neighbours> runs;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!runs.empty() && alike(stages[runs.back().first], stages[i])) {
      runs.back().last = i;
    } else {
      runs.push_back({i, i});
    }
  }
  return runs;
}

// The runs that are drawn: of too many some, evenly, with the ends and the worst.
std::vector<Neighbours> shown_of(const std::vector<Neighbours>& runs, std::size_t worst) {
  if (runs.size() <= most_bars) return runs;
  std::vector<Neighbours> shown;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool drawn =
        i * (most_bars - 2) / (runs.size() - 1) != (i + 1) * (most_bars - 2) / (runs.size() - 1);
    const bool is_worst = runs[i].first <= worst && worst <= runs[i].last;
    if (i == 0 || i + 1 == runs.size() || drawn || is_worst) shown.push_back(runs[i]);
  }
  return shown;
}

std::vector<MemoryBar> stage_bars(const Json& fit, const std::vector<Neighbours>& runs) {
  const Json& peak = fit.at("peak");
  const auto worst = peak.at("stage").get<std::size_t>();
  std::vector<MemoryBar> bars;
  for (const Neighbours& run : runs) {
    const bool has_worst = run.first <= worst && worst <= run.last;
    const Json& stage = fit.at("stages")[has_worst ? worst : run.first];
    const auto layers = stage.at("layers").get<std::int64_t>();
    MemoryBar bar{
        .name = fmt::format("stage {}, {} {}",
                            run.first == run.last ? fmt::format("{}", run.first)
                                                  : fmt::format("{}\u2013{}", run.first, run.last),
                            layers, layers == 1 ? "layer" : "layers"),
        .categories = &stage.at("categories"),
        .total = gib_value(stage.at("device_bytes")),
        .band = std::nullopt};
    if (has_worst) {
      bar.band = {gib_value(peak.at("device_bytes_low")), gib_value(peak.at("device_bytes_high"))};
      const Json& resumed = peak.at("resumed_reserved_bytes");
      if (!resumed.is_null()) {
        bar.resumed = bar.total - gib_value(peak.at("reserved_bytes")) + gib_value(resumed);
      }
    }
    bars.push_back(std::move(bar));
  }
  return bars;
}

PageTable phases_table(const Json& fit) {
  PageTable table{.caption = "GiB of the fullest stage in each phase of a run",
                  .columns = {{"phase", false}, {"allocated"}, {"reserved"}, {"highest at", false}},
                  .rows = {},
                  .folded = true};
  for (const Json& phase : fit.at("phases")) {
    table.rows.push_back(
        {spaced(phase.at("phase").get<std::string>()), gib(phase.at("allocated_bytes")),
         gib(phase.at("reserved_bytes")),
         phase.at("tensor").is_null() ? "its start" : phase.at("tensor").get<std::string>()});
  }
  return table;
}

std::string worst_words(const Json& fit) {
  const Json& peak = fit.at("peak");
  std::string text = fmt::format(
      "The fullest is stage {}, in {} at \u2018{}\u2019: {} GiB allocated by PyTorch, {} reserved, "
      "{} as nvidia-smi counts, of {} that a process can have.",
      peak.at("stage").get<std::int64_t>(), spaced(peak.at("phase").get<std::string>()),
      peak.at("tensor").get<std::string>(), gib(peak.at("allocated_bytes")),
      gib(peak.at("reserved_bytes")), gib(peak.at("device_bytes")), gib(fit.at("capacity_bytes")));
  const Json& resumed = peak.at("resumed_reserved_bytes");
  if (!resumed.is_null()) {
    const auto bytes = peak.at("device_bytes").get<std::int64_t>() -
                       peak.at("reserved_bytes").get<std::int64_t>() + resumed.get<std::int64_t>();
    text += fmt::format(
        " A run that resumes from a checkpoint needs {} GiB{}.", gib(Json(bytes)),
        bytes > fit.at("capacity_bytes").get<std::int64_t>() ? ", which does not fit" : "");
  }
  return text;
}

}  // namespace

Section memory_section(const Json& plan) {
  const Json& fit = plan.at("fit");
  Section section{.id = section_id("memory", plan),
                  .title = section_title("Memory of a GPU", plan)};
  section.paragraphs.push_back(worst_words(fit));
  const std::vector<Neighbours> runs = runs_of(fit.at("stages"));
  const auto worst = fit.at("peak").at("stage").get<std::size_t>();
  const std::vector<Neighbours> shown = shown_of(runs, worst);
  if (shown.size() < runs.size()) {
    section.paragraphs.push_back(fmt::format(
        "{} of {} different stages are drawn; the table has all.", shown.size(), runs.size()));
  }
  section.figures.push_back(memory_bars(section.id, "Memory of each pipeline stage",
                                        stage_bars(fit, shown),
                                        gib_value(fit.at("capacity_bytes"))));
  section.tables.push_back(memory_table(stage_bars(fit, runs), "stage"));
  if (!fit.at("phases").empty()) section.tables.push_back(phases_table(fit));
  const auto host = fit.at("host").at("bytes_per_node").get<std::int64_t>();
  if (host > 0) {
    section.paragraphs.push_back(
        fmt::format("Offloaded to the host of each node: {} GiB.", gib(Json(host))));
  }
  return section;
}

Section zero_section(const Json& page) {
  Section section{.id = "zero", .title = "The ZeRO stages of this model"};
  if (!page.contains("zero")) return section;
  const Json& taken = page.at("plans")[0].at("fit");
  std::vector<MemoryBar> bars;
  PageTable speed{
      .caption = "What each stage costs",
      .columns = {{"", false}, {"verdict", false}, {"needs GiB"}, {"step"}, {"tokens/s a GPU"}},
      .rows = {}};
  for (const Json& row : page.at("zero")) {
    const std::string name = "ZeRO " + row.at("stage").get<std::string>();
    if (row.contains("refused")) {
      bars.push_back({.name = name, .band = std::nullopt, .refused = row.at("refused")});
      speed.rows.push_back(
          {name, "refused: " + row.at("refused").get<std::string>(), "-", "-", "-"});
      continue;
    }
    const Json& fit = row.at("fit");
    const Json& stage = fit.at("stages")[fit.at("peak").at("stage").get<std::size_t>()];
    bars.push_back({.name = name,
                    .categories = &stage.at("categories"),
                    .total = gib_value(fit.at("peak").at("device_bytes")),
                    .band = std::nullopt});
    const Json& step = fit.at("step");
    speed.rows.push_back({name, verdict_words(fit.at("verdict")),
                          gib(fit.at("peak").at("device_bytes")),
                          step.is_null() ? "-" : seconds(step.at("seconds")),
                          step.is_null() ? "-" : rounded(step.at("tokens_per_second_per_gpu"))});
  }
  section.paragraphs.push_back(
      "Figure 1 of the ZeRO paper for this model, with all that is beside the states: the same "
      "degrees, batch and recomputation, the same schedule where the stage allows it, and one "
      "stage "
      "after the other. Each bar is the fullest GPU.");
  section.figures.push_back(memory_bars("zero", "Memory with each ZeRO stage", bars,
                                        gib_value(taken.at("capacity_bytes"))));
  section.tables.push_back(std::move(speed));
  section.tables.push_back(memory_table(bars, "ZeRO stage"));
  return section;
}

}  // namespace zeroplan
