// What else did the search find? Front doors: search_section, map_section.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/page/drawing.hpp"
#include "cli/page/numbers.hpp"
#include "cli/page/scatter.hpp"
#include "cli/page/sections.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

std::vector<ListedPlan> points_of(const Json& answer) {
  std::vector<ListedPlan> points;
  const Json& plans = answer.at("plans");
  const Json& front = answer.at("pareto");
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Json& plan = plans[i];
    if (plan.at("step").is_null()) continue;
    points.push_back({.at = {.memory = gib_value(plan.at("peak").at("device_bytes")),
                             .speed = plan.at("step").at("tokens_per_second_per_gpu")},
                      .front = std::find(front.begin(), front.end(), i) != front.end(),
                      .taken = answer.value("recommended", std::size_t{0}) == i,
                      .name = fmt::format("{}", i + 1)});
  }
  return points;
}

// As far as it is at least half as fast as the best: beyond, it would press the plans together.
std::vector<SpeedPoint> front_of(const Json& search) {
  double most = 0;
  for (const Json& point : search.at("front")) {
    most = std::max(most, point.at("tokens_per_second_per_gpu").get<double>());
  }
  std::vector<SpeedPoint> points;
  for (const Json& point : search.at("front")) {
    if (point.at("tokens_per_second_per_gpu").get<double>() < most / 2) continue;
    points.push_back({.memory = gib_value(point.at("device_bytes")),
                      .speed = point.at("tokens_per_second_per_gpu")});
  }
  return points;
}

PageTable plans_table(const Json& answer) {
  PageTable table{.caption = "The plans",
                  .columns = {{""},
                              {"layout", false},
                              {"step"},
                              {"tokens/s a GPU"},
                              {"needs GiB"},
                              {"free GiB"},
                              {"", false}},
                  .rows = {},
                  .stacked = true};
  const Json& plans = answer.at("plans");
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Json& plan = plans[i];
    const Json& front = answer.at("pareto");
    const bool on_front = std::find(front.begin(), front.end(), i) != front.end();
    std::string word = answer.value("recommended", std::size_t{0}) == i ? "recommended" : "";
    if (on_front) word += word.empty() ? "front" : ", front";
    const Json& step = plan.at("step");
    table.rows.push_back({fmt::format("{}", i + 1), layout_words(plan),
                          step.is_null() ? "-" : seconds(step.at("seconds")),
                          step.is_null() ? "-" : rounded(step.at("tokens_per_second_per_gpu")),
                          gib(plan.at("peak").at("device_bytes")), gib(plan.at("headroom_bytes")),
                          word});
  }
  return table;
}

// The roomiest listed plan of each tp and pp.
std::map<std::pair<std::int64_t, std::int64_t>, double> headroom_of(const Json& plans) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> most;
  for (const Json& plan : plans) {
    const std::pair<std::int64_t, std::int64_t> place{plan.at("layout").at("tp"),
                                                      plan.at("layout").at("pp")};
    const double free = gib_value(plan.at("headroom_bytes"));
    const auto [found, added] = most.emplace(place, free);
    if (!added) found->second = std::max(found->second, free);
  }
  return most;
}

std::string cell_words(const Json& cell, double best) {
  const Json& time = cell.at("seconds_per_token");
  if (!time.is_null()) {
    return fmt::format("{}{:.0f} %", cell.at("at_most").get<bool>() ? "< " : "",
                       100 * (time.get<double>() / best - 1));
  }
  return cell.at("cut").get<bool>() ? "slow" : "\u2013";
}

// Fainter at each bound that it is slower than.
std::string cell_style(const Json& cell, double best) {
  const Json& time = cell.at("seconds_per_token");
  if (time.is_null()) return "heat-4";
  const double slower = time.get<double>() / best - 1;
  std::size_t style = 0;
  for (const double bound : {0.03, 0.1, 0.25, 0.5}) style += slower > bound ? 1 : 0;
  return fmt::format("heat-{}", style);
}

bool is_taken(const Json& answer, std::int64_t tp, std::int64_t pp) {
  if (!answer.contains("recommended")) return false;
  const Json& layout = answer.at("plans")[answer.at("recommended").get<std::size_t>()].at("layout");
  return layout.at("tp") == tp && layout.at("pp") == pp;
}

}  // namespace

Section search_section(const Json& page) {
  Section section{.id = "search", .title = "What the search found"};
  if (!page.contains("search")) return section;
  const Json& search = page.at("search");
  const Json& answer = search.at("answer");
  section.paragraphs.push_back(fmt::format(
      "{} layouts make the space; {} were evaluated, {} of them fit. Listed are {}.",
      rounded(answer.at("layouts")), rounded(answer.at("evaluated")),
      rounded(answer.at("feasible")),
      answer.at("plans").size() == 1 ? "one plan"
                                     : fmt::format("{} plans", answer.at("plans").size())));
  if (!answer.at("rejected").empty()) {
    PageTable reasons{.caption = "Why the others are out",
                      .columns = {{"reason", false}, {"layouts"}},
                      .rows = {},
                      .folded = true};
    for (const auto& [why, count] : answer.at("rejected").items())
      reasons.rows.push_back({why, rounded(count)});
    section.tables.push_back(std::move(reasons));
  }
  const std::vector<ListedPlan> points = points_of(answer);
  if (points.empty()) return section;
  const std::vector<SpeedPoint> space = front_of(search);
  section.figures.push_back(
      figure("search", "Speed and memory of the listed plans",
             "Each mark is a plan; the table below has its numbers.", [&](Drawing& to) {
               draw_scatter(to, points, space, gib_value(search.at("capacity_bytes")));
             }));
  section.figures.back().legend = {{"ring", "recommended"},
                                   {"on-front", "no listed plan is both faster and smaller"},
                                   {"off-front", "other plans"}};
  if (!space.empty()) {
    section.figures.back().legend.push_back(
        {"of-space",
         "the front of all layouts at least half as fast, before the allocator is replayed"});
  }
  section.tables.insert(section.tables.begin(), plans_table(answer));
  return section;
}

Section map_section(const Json& page) {
  Section section{.id = "map", .title = "Tensor against pipeline parallelism"};
  if (!page.contains("search") || page.at("search").at("grid").size() < 2) return section;
  const Json& search = page.at("search");
  const Json& grid = search.at("grid");
  std::set<std::int64_t> rows, across;
  double best = 1e300;
  for (const Json& cell : grid) {
    rows.insert(cell.at("tp").get<std::int64_t>());
    across.insert(cell.at("pp").get<std::int64_t>());
    if (!cell.at("seconds_per_token").is_null())
      best = std::min(best, cell.at("seconds_per_token").get<double>());
  }
  const Json& plans = search.at("answer").at("plans");
  const auto free = headroom_of(plans);
  PageTable table{
      .caption = "Per cent slower than the fastest, and GiB free of the roomiest plan listed",
      .columns = {{"", false}},
      .rows = {}};
  for (const std::int64_t pp : across) table.columns.push_back({fmt::format("pp {}", pp)});
  for (const std::int64_t tp : rows) {
    std::vector<std::string> row{fmt::format("tp {}", tp)};
    std::vector<std::string> styles{""};
    for (const std::int64_t pp : across) {
      const auto found = std::find_if(grid.begin(), grid.end(), [&](const Json& cell) {
        return cell.at("tp") == tp && cell.at("pp") == pp;
      });
      row.push_back(found == grid.end() ? "" : cell_words(*found, best));
      if (const auto room = free.find({tp, pp}); room != free.end())
        row.back() += fmt::format(", {:.1f} GiB", room->second);
      styles.push_back(found == grid.end() ? "" : cell_style(*found, best));
      if (is_taken(search.at("answer"), tp, pp)) styles.back() += " taken";
    }
    table.rows.push_back(std::move(row));
    table.styles.push_back(std::move(styles));
  }
  section.paragraphs.emplace_back(
      "0 % is the fastest of all that was timed; the stronger the blue, the nearer to it; framed "
      "is the recommended plan. \u2018<\u2019: not all were timed, since none of the others can be "
      "among the best; \u2018slow\u2019: none was; \u2013: nothing fits; empty: the runtime cannot "
      "do it.");
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace zeroplan
