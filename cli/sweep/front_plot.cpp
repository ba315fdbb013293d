// What does memory buy? Front door: front_plot.
#include "cli/sweep/front_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "cli/out/axis.hpp"
#include "cli/out/report.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t height = 14;      // lines of letters
constexpr std::size_t label_width = 9;  // " 1,139 |" with room for a hundred thousand
constexpr std::size_t dots_down = 4, dots_across = 2;  // of a letter of Braille
constexpr int front_color = 25, taken_color = 166;     // of 256, as those of memory_bars

struct Place {
  double memory;  // GiB
  double speed;   // tokens a second and GPU
};

Place place_of(const Scored& s) {
  return {gibibytes(s.device), 1 / (static_cast<double>(s.gpus) * s.seconds_per_token)};
}

// Dots in letters, and letters in front of them.
class Canvas {
 public:
  Canvas(std::size_t width, bool blocks)
      : width_(width), blocks_(blocks), dots_(width * height), marks_(width * height) {}

  std::size_t across() const { return width_ * dots_across; }
  static std::size_t down() { return height * dots_down; }

  void dot(std::size_t x, std::size_t y) {
    // Bits of U+2800: three dots of either column from the top, then the lowest row.
    constexpr std::array<std::array<unsigned char, dots_across>, dots_down> bits{
        {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    dots_[y / dots_down * width_ + x / dots_across] |= bits[y % dots_down][x % dots_across];
  }

  // What stands there already stays: the better plan.
  void mark(std::size_t x, std::size_t y, char letter) {
    char& cell = marks_[y / dots_down * width_ + x / dots_across];
    if (cell == 0) cell = letter;
  }

  std::string line(std::size_t row, bool color) const {
    std::string out;
    for (std::size_t i = row * width_; i < (row + 1) * width_; ++i) {
      if (marks_[i] != 0) {
        out += colored(std::string(1, marks_[i]), marks_[i] == '*' ? taken_color : 0, color);
      } else if (dots_[i] != 0) {
        out += colored(blocks_ ? braille(dots_[i]) : ".", front_color, color);
      } else {
        out += ' ';
      }
    }
    return out;
  }

 private:
  static std::string colored(std::string text, int code, bool color) {
    return color && code != 0 ? fmt::format("\x1b[38;5;{}m{}\x1b[0m", code, text) : text;
  }
  static std::string braille(unsigned char bits) {
    std::string out = "\xe2\xa0\x80";  // U+2800 in UTF-8, six bits in the last byte
    out[1] = static_cast<char>(0xa0 | bits >> 6);
    out[2] = static_cast<char>(0x80 | (bits & 0x3f));
    return out;
  }

  std::size_t width_;
  bool blocks_;
  std::vector<unsigned char> dots_;
  std::vector<char> marks_;
};

class Plot {
 public:
  Plot(const SweepAnswer& answer, double capacity, TextStyle style)
      : style_(style), canvas_(style.width - label_width, style.blocks), capacity_(capacity) {
    for (const Scored& s : answer.search.front) front_.push_back(place_of(s));
    for (const Plan& plan : answer.plans) plans_.push_back(place_of(plan.scored));
    for (const std::vector<Place>* some : {&front_, &plans_}) {
      for (const Place& place : *some) {
        most_ = std::max(most_, place.speed);
        least_ = std::min(least_, place.speed);
        right_ = std::max(right_, place.memory);
        left_ = std::min(left_, place.memory);
      }
    }
    right_ = std::max(right_, capacity) * 1.001;
    step_ = round_step(right_ - left_, static_cast<int>((style.width - label_width) / 10));
    left_ = std::floor(left_ / step_) * step_;
    draw_front();
    canvas_mark(answer.recommended, '*');
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      canvas_mark(i, i < 9 ? static_cast<char>('1' + i) : '+');
    }
  }

  std::string text() const {
    const std::size_t bar = x(capacity_) / dots_across;
    std::string out = fmt::format("\n{:>{}}\n", "tok/s/GPU", label_width);
    for (std::size_t row = 0; row < height; ++row) {
      const bool labelled = row % 3 == 0 || row + 1 == height;
      const std::string label =
          labelled ? with_thousands(std::llround(speed_of(row))) : std::string();
      out += fmt::format("{:>{}} |", label, label_width - 2);
      out += with_capacity(row, bar) + "\n";
    }
    return out + ruler(bar);
  }

 private:
  std::size_t x(double memory) const {
    const auto last = static_cast<double>(canvas_.across() - 1);
    return static_cast<std::size_t>(
        std::lround(std::clamp((memory - left_) / (right_ - left_), 0.0, 1.0) * last));
  }
  std::size_t y(double speed) const {
    const auto last = static_cast<double>(Canvas::down() - 1);
    const double part = most_ > least_ ? (most_ - speed) / (most_ - least_) : 0;
    return static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * last));
  }
  double speed_of(std::size_t row) const {
    return most_ - (most_ - least_) * static_cast<double>(row) / (height - 1);
  }

  void canvas_mark(std::size_t plan, char letter) {
    canvas_.mark(x(plans_[plan].memory), y(plans_[plan].speed), letter);
  }

  // To the right at the speed that so much memory buys, up where more buys more.
  void draw_front() {
    std::ranges::sort(front_, {}, &Place::memory);
    for (std::size_t i = 0; i < front_.size(); ++i) {
      const std::size_t here = y(front_[i].speed);
      const bool last = i + 1 == front_.size();
      const std::size_t end = last ? x(front_[i].memory) : x(front_[i + 1].memory);
      for (std::size_t at = x(front_[i].memory); at <= end; ++at) canvas_.dot(at, here);
      const std::size_t top = last ? here : y(front_[i + 1].speed);
      for (std::size_t at = top; at <= here; ++at) canvas_.dot(end, at);
    }
  }

  // The line of capacity goes behind what is drawn.
  std::string with_capacity(std::size_t row, std::size_t bar) const {
    std::string line = canvas_.line(row, style_.color);
    std::size_t column = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\x1b') {
        i = line.find('m', i);
        continue;
      }
      if ((static_cast<unsigned char>(line[i]) & 0xC0U) == 0x80U) continue;
      if (column++ == bar && line[i] == ' ') line[i] = '|';
    }
    return line.substr(0, line.find_last_not_of(' ') + 1);
  }

  // Memory under the columns, and the capacity.
  std::string ruler(std::size_t bar) const {
    const std::size_t width = style_.width - label_width;
    std::string axis(width, '-');
    std::string numbers(width, ' ');
    const std::string end = fmt::format("{:.2f} GiB", capacity_);
    const std::size_t last = std::min(bar + end.size() / 2, width - 1) + 1 - end.size();
    numbers.replace(last, end.size(), end);
    for (double at = left_; at < right_; at += step_) {
      const std::size_t column = x(at) / dots_across;
      const std::string number = fmt::format("{:g}", at);
      if (column > 0) axis[column] = '+';
      if (column + number.size() + 1 < last) numbers.replace(column, number.size(), number);
    }
    axis[bar] = '|';
    return fmt::format("{:>{}}{}\n{:>{}}{}\n", "+", label_width, axis, "", label_width,
                       numbers.substr(0, numbers.find_last_not_of(' ') + 1));
  }

  TextStyle style_;
  Canvas canvas_;
  double capacity_;
  double left_ = 1e300, right_ = 0, step_ = 1, least_ = 1e300, most_ = 0;
  std::vector<Place> front_, plans_;
};

}  // namespace

std::string front_plot(const SweepAnswer& answer, const SweepQuestion& question, TextStyle style) {
  if (style.width == 0 || answer.search.front.empty()) return "";
  style.width = std::min(style.width, widest_drawing);
  const Bytes own = question.request.cluster.gpu.memory;
  const Bytes capacity = question.max_memory ? std::min(*question.max_memory, own) : own;
  return Plot(answer, gibibytes(capacity), style).text() +
         fmt::format(
             "  {}: the front of all layouts; *: recommended; 1 to 9, +: other plans of the "
             "table\n",
             style.blocks ? "\u2809\u2809" : "..");
}

}  // namespace zeroplan
