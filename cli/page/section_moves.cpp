// How does memory move over a step? Front door: moves_section.
#include <fmt/format.h>

#include <algorithm>

#include "cli/out/axis.hpp"
#include "cli/out/report.hpp"
#include "cli/page/drawing.hpp"
#include "cli/page/memory_bars.hpp"
#include "cli/page/numbers.hpp"
#include "cli/page/sections.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t shown_tensors = 12;

class Hill {
 public:
  Hill(Drawing& to, const Json& moves, double capacity)
      : to_(to), moves_(moves), capacity_(capacity) {
    const double highest = gib_value(moves.at("peak_bytes"));
    top_ = std::max(capacity, highest) * 1.02;
    const Json& moments = moves.at("moments");
    step_ = (to.width() - left_ - right_) / static_cast<double>(moments.size());
    grid();
    areas(moments);
    limit();
    passes();
    peak();
    to_.set_height(bottom_ + 24);
  }

 private:
  double y(double value) const { return bottom_ - value / top_ * (bottom_ - 18); }

  void grid() {
    const double mark = round_step(top_, 5);
    for (double at = 0; at <= top_; at += mark) {
      to_.line(left_, y(at), to_.width() - right_, y(at), "grid");
      to_.text(left_ - 6, y(at) + 4, fmt::format("{:g}", at), "tick", Anchor::end);
    }
    to_.text(left_ - 6, 10, "GiB", "tick", Anchor::end);
  }

  // One below the other, the first at the bottom; a step of its width each moment.
  void areas(const Json& moments) {
    std::vector<double> below(moments.size(), 0);
    for (const auto& [name, ignored] : moments[0].at("categories").items()) {
      std::string up;
      std::string down;
      bool any = false;
      for (std::size_t i = 0; i < moments.size(); ++i) {
        const double bytes = gib_value(moments[i].at("categories").at(name));
        any = any || bytes > 0;
        const double x = left_ + step_ * static_cast<double>(i);
        up += fmt::format("{}{} {}H{}", i == 0 ? "M" : "L", pixels(x), pixels(y(below[i] + bytes)),
                          pixels(x + step_));
        down = fmt::format("L{} {}H{}", pixels(x + step_), pixels(y(below[i])), pixels(x)) + down;
        below[i] += bytes;
      }
      if (any) to_.path(up + down + "Z", "area " + category_style(name), spaced(name));
    }
  }

  void limit() {
    to_.line(left_, y(capacity_), to_.width() - right_, y(capacity_), "capacity");
    to_.text(to_.width() - right_, y(capacity_) - 5, fmt::format("{:.2f} GiB a GPU", capacity_),
             "label strong", Anchor::end);
  }

  // Names below where the passes begin, as many as have room.
  void passes() {
    double free = left_;
    const double events = moves_.at("events").get<double>();
    for (const Json& pass : moves_.at("passes")) {
      const auto name = pass.at("name").get<std::string>();
      const double x =
          left_ + pass.at("first_event").get<double>() / events * (to_.width() - left_ - right_);
      if (x < free || x + text_width(name, 11) > to_.width()) continue;
      to_.line(x, bottom_, x, bottom_ + 5, "axis");
      to_.text(x, bottom_ + 17, name, "tick");
      free = x + text_width(name, 11) + 8;
    }
  }

  void peak() {
    const double x = left_ + moves_.at("peak_event").get<double>() /
                                 moves_.at("events").get<double>() * (to_.width() - left_ - right_);
    to_.circle(x, y(gib_value(moves_.at("peak_bytes"))), 4.5, "peak",
               fmt::format("highest: {} GiB", gib(moves_.at("peak_bytes"))));
  }

  Drawing& to_;
  const Json& moves_;
  double capacity_;
  double top_ = 0, step_ = 0;
  double left_ = 40, right_ = 8, bottom_ = 250;
};

PageTable live_table(const Json& moves) {
  PageTable table{
      .caption = "Live at the highest moment",
      .columns = {{"tensor", false}, {"kind", false}, {"how many"}, {"GiB"}},
      .rows = {{"what stays through the step", "", "", gib(moves.at("resident_bytes"))}}};
  std::int64_t more = 0;
  std::int64_t bytes = 0;
  for (const Json& tensor : moves.at("live")) {
    if (table.rows.size() <= shown_tensors) {
      table.rows.push_back({tensor.at("name").get<std::string>(),
                            spaced(tensor.at("category").get<std::string>()),
                            rounded(tensor.at("count")), gib(tensor.at("bytes"))});
    } else {
      more += tensor.at("count").get<std::int64_t>();
      bytes += tensor.at("bytes").get<std::int64_t>();
    }
  }
  if (more > 0) table.rows.push_back({"smaller ones", "", with_thousands(more), gib(Json(bytes))});
  table.rows.push_back({"allocated", "", "", gib(moves.at("peak_bytes"))});
  return table;
}

}  // namespace

Section moves_section(const Json& plan) {
  Section section{.id = section_id("moves", plan),
                  .title = section_title("Memory over a step", plan)};
  const Json& moves = plan.at("moves");
  if (moves.is_null()) return section;
  section.paragraphs.push_back(fmt::format(
      "What PyTorch has allocated on stage {} after each of {} events of a step: highest at "
      "\u2018{}\u2019 with {} GiB. {} are drawn, after which memory repeats; f is a forward "
      "pass, b a backward pass, with the number of the micro-batch.",
      moves.at("stage").get<std::int64_t>(), rounded(moves.at("events")),
      moves.at("peak_tensor").get<std::string>(), gib(moves.at("peak_bytes")),
      moves.at("micro_batches") == 1 ? std::string("One micro-batch is all that is")
                                     : rounded(moves.at("micro_batches")) + " micro-batches"));
  const double capacity = gib_value(plan.at("fit").at("capacity_bytes"));
  section.figures.push_back(
      figure(section.id, "Allocated memory over a step",
             fmt::format("Highest {} GiB, of which {} GiB stay through the step.",
                         gib(moves.at("peak_bytes")), gib(moves.at("resident_bytes"))),
             [&](Drawing& to) { Hill(to, moves, capacity); }));
  for (const auto& [name, ignored] : moves.at("moments")[0].at("categories").items()) {
    const bool used = std::any_of(
        moves.at("moments").begin(), moves.at("moments").end(),
        [&, key = name](const Json& moment) { return moment.at("categories").at(key) > 0; });
    if (used) section.figures.back().legend.push_back({category_style(name), spaced(name)});
  }
  section.tables.push_back(live_table(moves));
  return section;
}

}  // namespace zeroplan
