// When does each rank do what? Front door: schedule_section.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/out/axis.hpp"
#include "cli/page/drawing.hpp"
#include "cli/page/numbers.hpp"
#include "cli/page/sections.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

// A lane a rank. What is drawn alike is one path: thousands of passes stay small.
class LaneDrawing {
 public:
  LaneDrawing(Drawing& to, const Json& schedule) : to_(to) {
    const Json& ranks = schedule.at("ranks");
    const auto count = static_cast<double>(ranks.size());
    left_ = ranks.size() > 1 ? (to.narrow() ? 26 : 52) : 4;
    scale_ = (to.width() - left_ - 4) / schedule.at("seconds").get<double>();
    pitch_ = std::clamp(300 / count, 7.0, 26.0);
    for (const Json& rank : ranks) lane(rank);
    for (const auto& [style, d] : paths_) to_.path(d, style);
    axis(schedule.at("seconds").get<double>());
  }

 private:
  void box(const std::string& style, double start, double end) {
    const double width = std::max((end - start) * scale_, 0.15);
    paths_[style] += fmt::format("M{} {}h{}v{}h-{}z", pixels(left_ + start * scale_), pixels(y_),
                                 pixels(width), pixels(pitch_ - 2), pixels(width));
  }

  void lane(const Json& rank) {
    // Neighbours that are thinner than a pixel are drawn as one.
    std::string style;
    double start = 0;
    double end = 0;
    for (const Json& pass : rank.at("passes")) {
      const auto from = pass.at("start").get<double>();
      const auto until = pass.at("end").get<double>();
      const std::string own = "s-" + pass.at("kind").get<std::string>() +
                              (pass.at("chunk").get<std::int64_t>() % 2 == 1 ? " odd" : "");
      const bool thin = (until - from) * scale_ < 1.5 && (from - end) * scale_ < 0.2;
      if (own == style && thin) {
        end = until;
        continue;
      }
      if (!style.empty()) box(style, start, end);
      style = own;
      start = from;
      end = until;
    }
    if (!style.empty()) box(style, start, end);
    const auto at = [&](const char* key) { return rank.at(key).get<double>(); };
    if (at("reduced") > at("passed")) box("s-reduce", at("passed"), at("reduced"));
    if (at("updated") > at("reduced")) box("s-update", at("reduced"), at("updated"));
    if (at("gathered") > at("updated")) box("s-gather", at("updated"), at("gathered"));
    if (left_ > 20 && (pitch_ >= 11 || named_ % 4 == 0)) {
      to_.text(
          left_ - 6, y_ + pitch_ / 2 + 3,
          fmt::format("{}{}", to_.narrow() ? "" : "rank ", rank.at("rank").get<std::int64_t>()),
          "tick", Anchor::end);
    }
    ++named_;
    y_ += pitch_;
  }

  void axis(double whole) {
    const double mark = round_step(whole, to_.narrow() ? 4 : 10);
    for (double at = 0; at <= whole * 1.0001; at += mark) {
      const double x = left_ + at * scale_;
      to_.line(x, y_, x, y_ + 4, "axis");
      to_.text(x, y_ + 17, at == 0 ? "0" : seconds(at), "tick",
               at == 0                ? Anchor::start
               : x + 20 > to_.width() ? Anchor::end
                                      : Anchor::middle);
    }
    to_.set_height(y_ + 24);
  }

  Drawing& to_;
  std::map<std::string, std::string> paths_;
  double left_ = 0, scale_ = 0, pitch_ = 0, y_ = 4;
  int named_ = 0;
};

bool any_pass(const Json& schedule, const char* kind) {
  const Json& ranks = schedule.at("ranks");
  return std::any_of(ranks.begin(), ranks.end(), [&](const Json& rank) {
    const Json& passes = rank.at("passes");
    return std::any_of(passes.begin(), passes.end(),
                       [&](const Json& pass) { return pass.at("kind") == kind; });
  });
}

bool any_span(const Json& schedule, const char* from, const char* until) {
  const Json& ranks = schedule.at("ranks");
  return std::any_of(ranks.begin(), ranks.end(),
                     [&](const Json& rank) { return rank.at(until) > rank.at(from); });
}

std::vector<LegendEntry> legend_of(const Json& schedule) {
  std::vector<LegendEntry> legend;
  const std::pair<const char*, const char*> kinds[] = {{"forward", "forward"},
                                                       {"backward", "backward"},
                                                       {"input_gradient", "gradient of inputs"},
                                                       {"weight_gradient", "gradient of weights"}};
  for (const auto& [kind, name] : kinds) {
    if (any_pass(schedule, kind)) legend.push_back({"s-" + std::string(kind), name});
  }
  if (any_span(schedule, "passed", "reduced")) {
    legend.push_back({"s-reduce", "gradients reduced, ranks awaited"});
  }
  if (any_span(schedule, "reduced", "updated")) legend.push_back({"s-update", "optimizer"});
  if (any_span(schedule, "updated", "gathered")) {
    legend.push_back({"s-gather", "parameters gathered"});
  }
  return legend;
}

}  // namespace

Section schedule_section(const Json& plan) {
  Section section{.id = section_id("schedule", plan), .title = section_title("The schedule", plan)};
  const Json& schedule = plan.at("schedule");
  if (schedule.is_null()) return section;
  const Json& layout = plan.at("fit").at("layout");
  const auto shown = schedule.at("micro_batches").get<std::int64_t>();
  const auto all = layout.at("gradient_accumulation").get<std::int64_t>();
  const std::size_t ranks = schedule.at("ranks").size();
  const std::string who =
      ranks == 1 ? "The one pipeline rank" : fmt::format("All {} pipeline ranks", ranks);
  const auto chunks = layout.at("vpp").get<std::int64_t>();
  section.paragraphs.push_back(fmt::format(
      "{} under {}, by prediction{}{}.", who, layout.at("schedule").get<std::string>(),
      shown < all ? fmt::format(", in a step of {} of its {} micro-batches", shown, all) : "",
      chunks > 1 ? "; every second model chunk is paler" : ""));
  section.figures.push_back(figure(section.id, "When each pipeline rank computes",
                                   fmt::format("{} ranks, {} micro-batches, {} in all.", ranks,
                                               shown, seconds(schedule.at("seconds"))),
                                   [&](Drawing& to) { LaneDrawing(to, schedule); }));
  section.figures.back().legend = legend_of(schedule);
  PageTable table{
      .caption = "When each rank is done",
      .columns =
          {{"rank"}, {"passes"}, {"last pass"}, {"gradients reduced"}, {"optimizer"}, {"end"}},
      .rows = {},
      .folded = true};
  for (const Json& rank : schedule.at("ranks")) {
    table.rows.push_back({rounded(rank.at("rank")),
                          rounded(static_cast<double>(rank.at("passes").size())),
                          seconds(rank.at("passed")), seconds(rank.at("reduced")),
                          seconds(rank.at("updated")), seconds(rank.at("gathered"))});
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace zeroplan
