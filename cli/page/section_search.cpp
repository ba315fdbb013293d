// What else did the search find? Front doors: search_section, map_section.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/page/drawing.hpp"
#include "cli/page/numbers.hpp"
#include "cli/page/sections.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

struct Point {
  double memory, speed;
  bool front, taken;
  std::string name;
};

std::vector<Point> points_of(const Json& answer) {
  std::vector<Point> points;
  const Json& plans = answer.at("plans");
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Json& plan = plans[i];
    if (plan.at("step").is_null()) continue;
    const Json& front = answer.at("pareto");
    points.push_back({.memory = gib_value(plan.at("peak").at("device_bytes")),
                      .speed = plan.at("step").at("tokens_per_second_per_gpu"),
                      .front = std::find(front.begin(), front.end(), i) != front.end(),
                      .taken = answer.value("recommended", std::size_t{0}) == i,
                      .name = fmt::format("{}", i + 1)});
  }
  return points;
}

class Scatter {
 public:
  Scatter(Drawing& to, const std::vector<Point>& points, double capacity) : to_(to) {
    for (const Point& point : points) {
      most_memory_ = std::max(most_memory_, point.memory);
      least_ = std::min(least_, point.speed);
      most_ = std::max(most_, point.speed);
    }
    most_memory_ = std::max(most_memory_, capacity) * 1.03;
    const double room = std::max(0.1 * (most_ - least_), 0.01 * most_);
    least_ -= room;
    most_ += room;
    axes();
    to_.line(x(capacity), 14, x(capacity), bottom_, "capacity");
    to_.text(x(capacity) - 6, 24, fmt::format("{:.2f} GiB a GPU", capacity), "label strong",
             Anchor::end);
    front(points);
    for (const Point& point : points) mark(point);
    to_.set_height(bottom_ + 40);
  }

 private:
  double x(double memory) const {
    return left_ + memory / most_memory_ * (to_.width() - left_ - 10);
  }
  double y(double speed) const {
    return bottom_ - (speed - least_) / (most_ - least_) * (bottom_ - 14);
  }

  void axes() {
    const double across = round_step(most_memory_, to_.narrow() ? 5 : 10);
    for (double at = 0; at <= most_memory_; at += across) {
      to_.line(x(at), 14, x(at), bottom_, "grid");
      to_.text(x(at), bottom_ + 16, fmt::format("{:g}", at), "tick", Anchor::middle);
    }
    const double up = round_step(most_ - least_, 5);
    for (double at = std::ceil(least_ / up) * up; at <= most_; at += up) {
      to_.line(left_, y(at), to_.width() - 10, y(at), "grid");
      to_.text(left_ - 6, y(at) + 4, up < 1 ? fmt::format("{:.2g}", at) : rounded(at), "tick",
               Anchor::end);
    }
    to_.text(left_ - 6, 10, "tok/s", "tick", Anchor::end);
    to_.text(to_.width() - 10, bottom_ + 33, "memory of the fullest GPU, GiB", "tick", Anchor::end);
  }

  // What is up and to the left of the line no listed plan reaches.
  void front(std::vector<Point> points) {
    std::erase_if(points, [](const Point& point) { return !point.front; });
    std::sort(points.begin(), points.end(),
              [](const Point& a, const Point& b) { return a.memory < b.memory; });
    std::string d;
    for (const Point& point : points) {
      d += d.empty() ? fmt::format("M{} {}", pixels(x(point.memory)), pixels(y(point.speed)))
                     : fmt::format("H{}V{}", pixels(x(point.memory)), pixels(y(point.speed)));
    }
    if (points.size() > 1) to_.path(d, "front");
  }

  void mark(const Point& point) {
    const std::string tip = fmt::format("plan {}: {:.2f} GiB, {} tokens/s a GPU", point.name,
                                        point.memory, rounded(point.speed));
    const double px = x(point.memory);
    const double py = y(point.speed);
    to_.circle(px, py, 5, point.front ? "on-front" : "off-front", tip);
    if (point.taken) to_.circle(px, py, 10, "ring");
    name(point.name, px, py);
  }

  // Left out where another name stands; pointing at the mark tells.
  void name(const std::string& text, double px, double py) {
    for (const double dx : {13.0, -13.0 - text_width(text, 11)}) {
      const double at = px + dx;
      const bool taken = std::any_of(named_.begin(), named_.end(), [&](const auto& other) {
        return std::abs(other.first - at) < 16 && std::abs(other.second - py) < 12;
      });
      if (taken || at + 14 > to_.width()) continue;
      to_.text(at, py - 7, text, "tick");
      named_.emplace_back(at, py);
      return;
    }
  }

  Drawing& to_;
  double most_memory_ = 0, least_ = 1e300, most_ = 0;
  double left_ = 52, bottom_ = 260;
  std::vector<std::pair<double, double>> named_;
};

PageTable plans_table(const Json& answer) {
  PageTable table{.caption = "The plans",
                  .columns = {{""},
                              {"layout", false},
                              {"step"},
                              {"tokens/s a GPU"},
                              {"needs GiB"},
                              {"free GiB"},
                              {"", false}},
                  .rows = {}};
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

}  // namespace

Section search_section(const Json& page) {
  Section section{.id = "search", .title = "What the search found"};
  if (page.at("kind") != "sweep") return section;
  const Json& answer = page.at("answer");
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
  const std::vector<Point> points = points_of(answer);
  if (points.empty()) return section;
  section.figures.push_back(
      figure("search", "Speed and memory of the listed plans",
             "Each mark is a plan; the table below has its numbers.",
             [&](Drawing& to) { Scatter(to, points, gib_value(page.at("capacity_bytes"))); }));
  section.figures.back().legend = {{"ring", "recommended"},
                                   {"on-front", "no listed plan is both faster and smaller"},
                                   {"off-front", "other plans"}};
  section.tables.insert(section.tables.begin(), plans_table(answer));
  return section;
}

Section map_section(const Json& page) {
  Section section{.id = "map", .title = "Tensor against pipeline parallelism"};
  if (!page.contains("grid") || page.at("grid").size() < 2) return section;
  std::set<std::int64_t> rows, across;
  double best = 1e300;
  for (const Json& cell : page.at("grid")) {
    rows.insert(cell.at("tp").get<std::int64_t>());
    across.insert(cell.at("pp").get<std::int64_t>());
    if (!cell.at("seconds_per_token").is_null())
      best = std::min(best, cell.at("seconds_per_token").get<double>());
  }
  const auto free = headroom_of(page.at("answer").at("plans"));
  PageTable table{
      .caption = "Per cent slower than the fastest, and GiB free of the roomiest plan listed",
      .columns = {{"", false}},
      .rows = {}};
  for (const std::int64_t pp : across) table.columns.push_back({fmt::format("pp {}", pp)});
  for (const std::int64_t tp : rows) {
    std::vector<std::string> row{fmt::format("tp {}", tp)};
    for (const std::int64_t pp : across) {
      const auto found = std::find_if(
          page.at("grid").begin(), page.at("grid").end(),
          [&](const Json& cell) { return cell.at("tp") == tp && cell.at("pp") == pp; });
      if (found == page.at("grid").end()) {
        row.emplace_back("");
        continue;
      }
      const Json& time = found->at("seconds_per_token");
      std::string text = !time.is_null()
                             ? fmt::format("{:.0f} %", 100 * (time.get<double>() / best - 1))
                         : found->at("cut").get<bool>() ? "slow"
                                                        : "\u2013";
      if (const auto room = free.find({tp, pp}); room != free.end())
        text += fmt::format(", {:.1f} GiB", room->second);
      row.push_back(std::move(text));
    }
    table.rows.push_back(std::move(row));
  }
  section.paragraphs.emplace_back(
      "0 % is the fastest of all that was timed. \u2018slow\u2019: none was timed, since none can "
      "be among the "
      "best; \u2013: nothing fits; empty: the runtime cannot do it.");
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace zeroplan
