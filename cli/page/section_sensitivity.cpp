// What if one thing were different? Front doors: sensitivity_section, remedies_section.
#include <fmt/format.h>

#include <algorithm>

#include "cli/page/drawing.hpp"
#include "cli/page/numbers.hpp"
#include "cli/page/sections.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

std::string value_words(const Json& cell) {
  const auto value = cell.at("value").get<std::string>();
  if (cell.at("axis") == "GPU") return value;
  const char* unit = cell.at("axis") != "GPUs" ? " tokens" : value == "1" ? " GPU" : " GPUs";
  return rounded(std::stod(value)) + unit;
}

std::string fewest_words(const Json& fit) {
  return fmt::format("The smallest number of {} on which some layout fits: {}.",
                     fit.at("cluster").at("gpu").get<std::string>(),
                     rounded(fit.at("fewest_gpus")));
}

void draw_cell(Drawing& to, const Json& cell, double x, double y, double width) {
  const bool refused = cell.contains("refused");
  const std::string verdict = refused ? "refused" : cell.at("fit").at("verdict").get<std::string>();
  const std::string tip =
      refused ? cell.at("refused").get<std::string>() : layout_words(cell.at("fit"));
  to.rect(x, y, width, 72, "cell v-" + verdict + (cell.at("same").get<bool>() ? " same" : ""), tip);
  to.text(x + 8, y + 18, value_words(cell), to.narrow() ? "small strong" : "label strong");
  const char* size = to.narrow() ? "small" : "label";
  if (refused) {
    to.text(x + 8, y + 37, "refused", size);
    return;
  }
  const Json& fit = cell.at("fit");
  const std::string sign = verdict == "fits" ? "\u2713 " : verdict == "tight" ? "~ " : "\u2717 ";
  const std::string words = sign + verdict_words(fit.at("verdict"));
  const Json& step = fit.at("step");
  const std::string needs = gib(fit.at("peak").at("device_bytes")) + " GiB";
  const std::string speed = step.is_null() ? ""
                                           : rounded(step.at("tokens_per_second_per_gpu")) +
                                                 (to.narrow() ? " tok/s" : " tokens/s a GPU");
  if (to.narrow()) {
    to.text(x + 8, y + 37, words, size);
    to.text(x + 8, y + 51, needs, size);
    to.text(x + 8, y + 64, speed, size);
  } else {
    to.text(x + 8, y + 37, words + ", " + needs, size);
    to.text(x + 8, y + 56, speed, size);
  }
}

void draw_strip(Drawing& to, const Json& cells) {
  double y = 4;
  for (const char* axis : {"GPUs", "length", "GPU"}) {
    std::vector<const Json*> row;
    for (const Json& cell : cells) {
      if (cell.at("axis") == axis) row.push_back(&cell);
    }
    if (row.empty()) continue;
    const std::size_t a_line = to.narrow() ? std::min<std::size_t>(row.size(), 3) : row.size();
    const double width = (to.width() - 8) / static_cast<double>(a_line);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0 && i % a_line == 0) y += 80;
      draw_cell(to, *row[i], 4 + width * static_cast<double>(i % a_line), y, width - 6);
    }
    y += 84;
  }
  to.set_height(y);
}

}  // namespace

Section sensitivity_section(const Json& page) {
  Section section{.id = "sensitivity", .title = "If one thing were different"};
  if (!page.contains("sensitivity")) return section;
  const Json& cells = page.at("sensitivity");
  section.paragraphs.emplace_back(
      "Each cell is an answer of zeroplan fit to the same question with that one thing changed: "
      "what was given stays, "
      "what was not is chosen anew.");
  const Json& answer = page.at("answer");
  const bool fits = page.at("kind") == "fit" && answer.at("verdict") != "does_not_fit";
  if (fits && answer.contains("fewest_gpus")) section.paragraphs.push_back(fewest_words(answer));
  section.figures.push_back(figure("sensitivity", "The same question with one thing changed",
                                   "The table below has the numbers.",
                                   [&](Drawing& to) { draw_strip(to, cells); }));
  PageTable table{
      .caption = "The answers",
      .columns = {{"", false}, {"verdict", false}, {"needs GiB"}, {"step"}, {"tokens/s"}},
      .rows = {},
      .folded = true};
  const bool costs = page.at("plans")[0].at("fit").contains("training");
  const bool money = costs && page.at("plans")[0].at("fit").at("training").contains("money");
  if (costs) {
    table.columns.push_back({"days"});
    table.columns.push_back({"GPU hours"});
    if (money) table.columns.push_back({"money"});
  }
  table.columns.push_back({"layout", false});
  for (const Json& cell : cells) {
    std::vector<std::string> row{value_words(cell) +
                                 (cell.at("same").get<bool>() ? " (as asked)" : "")};
    if (cell.contains("refused")) {
      row.emplace_back("refused");
      row.resize(table.columns.size() - 1, "-");
      row.push_back(cell.at("refused"));
    } else {
      const Json& fit = cell.at("fit");
      const Json& step = fit.at("step");
      row.push_back(verdict_words(fit.at("verdict")));
      row.push_back(gib(fit.at("peak").at("device_bytes")));
      row.push_back(step.is_null() ? "-" : seconds(step.at("seconds")));
      row.push_back(step.is_null() ? "-"
                                   : rounded(step.at("tokens_per_second_per_gpu").get<double>() *
                                             fit.at("cluster").at("gpus").get<double>()));
      if (costs) {
        const Json& training = fit.at("training");
        row.push_back(
            training.is_null() ? "-" : fmt::format("{:.1f}", training.at("days").get<double>()));
        row.push_back(training.is_null() ? "-" : rounded(training.at("gpu_hours")));
        if (money) row.push_back(training.is_null() ? "-" : rounded(training.at("money")));
      }
      row.push_back(layout_words(fit));
    }
    table.rows.push_back(std::move(row));
  }
  section.tables.push_back(std::move(table));
  return section;
}

Section remedies_section(const Json& page) {
  Section section{.id = "remedies", .title = "What would make it fit"};
  if (page.at("kind") != "fit") return section;
  const Json& answer = page.at("answer");
  PageTable table{.caption = "One change, all else of this layout as it is",
                  .columns = {{"change", false}, {"needs GiB"}, {"step"}},
                  .rows = {}};
  for (const Json& change : answer.at("nearest_fits")) {
    table.rows.push_back({change.at("change").get<std::string>(), gib(change.at("device_bytes")),
                          seconds(change.at("step_seconds"))});
  }
  if (!table.rows.empty()) section.tables.push_back(std::move(table));
  if (answer.at("verdict") == "does_not_fit" && answer.contains("fewest_gpus")) {
    section.paragraphs.push_back(fewest_words(answer));
  }
  return section;
}

}  // namespace zeroplan
