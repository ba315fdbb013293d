// How do speed and memory of plans lie? Front door: draw_scatter.
#include "cli/page/scatter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/out/axis.hpp"
#include "cli/page/numbers.hpp"

namespace zeroplan {
namespace {

class Scatter {
 public:
  Scatter(Drawing& to,
          const std::vector<ListedPlan>& plans,
          const std::vector<SpeedPoint>& space,
          double capacity)
      : to_(to) {
    for (const ListedPlan& plan : plans) widen(plan.at);
    for (const SpeedPoint& point : space) widen(point);
    right_end_ = std::max(right_end_, capacity);
    across_ = round_step(1.06 * (right_end_ - left_end_), to_.narrow() ? 4 : 10);
    right_end_ += 0.03 * (right_end_ - left_end_);
    left_end_ = std::max(0.0, std::floor(left_end_ / across_ - 0.25) * across_);
    const double room = std::max(0.1 * (most_ - least_), 0.01 * most_);
    least_ = std::max(0.0, least_ - room);
    most_ += room;
    axes();
    line_ = x(capacity);
    to_.line(line_, top_, line_, bottom_, "capacity");
    to_.text(std::min(line_ + 4, to_.width() - 2), 12, fmt::format("{:.2f} GiB a GPU", capacity),
             "label strong", Anchor::end);
    front(space, "of-space");
    std::vector<SpeedPoint> best;
    for (const ListedPlan& plan : plans) {
      if (plan.front) best.push_back(plan.at);
    }
    if (best.size() > 1) front(std::move(best), "front");
    for (const ListedPlan& plan : plans) mark(plan);
    to_.set_height(bottom_ + 40);
  }

 private:
  void widen(const SpeedPoint& point) {
    left_end_ = std::min(left_end_, point.memory);
    right_end_ = std::max(right_end_, point.memory);
    least_ = std::min(least_, point.speed);
    most_ = std::max(most_, point.speed);
  }

  double x(double memory) const {
    return left_ + (memory - left_end_) / (right_end_ - left_end_) * (to_.width() - left_ - 10);
  }
  double y(double speed) const {
    return bottom_ - (speed - least_) / (most_ - least_) * (bottom_ - top_);
  }

  void axes() {
    for (double at = left_end_; at <= right_end_; at += across_) {
      to_.line(x(at), top_, x(at), bottom_, "grid");
      to_.text(x(at), bottom_ + 16, fmt::format("{:g}", at), "tick", Anchor::middle);
    }
    const double up = round_step(most_ - least_, 5);
    for (double at = std::ceil(least_ / up) * up; at <= most_; at += up) {
      to_.line(left_, y(at), to_.width() - 10, y(at), "grid");
      to_.text(left_ - 6, y(at) + 4, up < 1 ? fmt::format("{:.2g}", at) : rounded(at), "tick",
               Anchor::end);
    }
    to_.text(left_ - 6, 12, "tok/s", "tick", Anchor::end);
    to_.text(to_.width() - 10, bottom_ + 33, "memory of the fullest GPU, GiB", "tick", Anchor::end);
  }

  // What is up and to the left of the line is reached by none.
  void front(std::vector<SpeedPoint> points, std::string_view style) {
    if (points.empty()) return;
    std::ranges::sort(points, {}, &SpeedPoint::memory);
    std::string d;
    for (const SpeedPoint& point : points) {
      d += d.empty() ? fmt::format("M{} {}", pixels(x(point.memory)), pixels(y(point.speed)))
                     : fmt::format("H{}V{}", pixels(x(point.memory)), pixels(y(point.speed)));
    }
    to_.path(d, style);
  }

  void mark(const ListedPlan& plan) {
    const double px = x(plan.at.memory);
    const double py = y(plan.at.speed);
    to_.circle(px, py, 5, plan.front ? "on-front" : "off-front",
               fmt::format("plan {}: {:.2f} GiB, {} tokens/s a GPU", plan.name, plan.at.memory,
                           rounded(plan.at.speed)));
    if (plan.taken) to_.circle(px, py, 10, "ring");
    name(plan.name, px, py);
  }

  // Left out where another name stands, or the capacity; pointing at the mark tells.
  void name(const std::string& text, double px, double py) {
    for (const double dx : {13.0, -13.0 - text_width(text, 11)}) {
      const double at = px + dx;
      const bool taken = std::any_of(named_.begin(), named_.end(), [&](const auto& other) {
        return std::abs(other.first - at) < 16 && std::abs(other.second - py) < 12;
      });
      const bool crossed = line_ > at - 2 && line_ < at + text_width(text, 11) + 2;
      if (taken || crossed || at + 14 > to_.width()) continue;
      to_.text(at, py - 7, text, "tick");
      named_.emplace_back(at, py);
      return;
    }
  }

  Drawing& to_;
  double left_end_ = 1e300, right_end_ = 0, across_ = 1, least_ = 1e300, most_ = 0;
  double left_ = 52, top_ = 20, bottom_ = 266, line_ = 0;
  std::vector<std::pair<double, double>> named_;
};

}  // namespace

void draw_scatter(Drawing& to,
                  const std::vector<ListedPlan>& plans,
                  const std::vector<SpeedPoint>& space,
                  double capacity) {
  Scatter(to, plans, space, capacity);
}

}  // namespace zeroplan
