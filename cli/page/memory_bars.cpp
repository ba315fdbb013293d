// What is memory made of? Front doors: memory_bars, memory_table.
#include "cli/page/memory_bars.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/out/report.hpp"
#include "cli/page/drawing.hpp"
#include "cli/page/numbers.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

double longest(const std::vector<MemoryBar>& bars, double capacity) {
  double most = capacity;
  for (const MemoryBar& bar : bars) {
    most = std::max({most, bar.total, bar.resumed, bar.band ? bar.band->second : 0.0});
  }
  return most;
}

class Bars {
 public:
  Bars(Drawing& to, const std::vector<MemoryBar>& bars, double capacity)
      : to_(to), capacity_(capacity) {
    double label = 0;
    for (const MemoryBar& bar : bars) label = std::max(label, text_width(bar.name));
    left_ = to.narrow() ? 4 : label + 14;
    const double right = to.narrow() ? 10 : 92;  // room for the total beside the bar
    scale_ = (to.width() - left_ - right) / longest(bars, capacity);
    line_ = left_ + capacity * scale_;
    y_ = 24;
    for (const MemoryBar& bar : bars) draw(bar);
    if (!to.narrow()) to_.line(line_, 18, line_, y_ - 4, "capacity");
    const std::string text = fmt::format("{:.2f} GiB a GPU", capacity);
    const bool at_end = line_ + text_width(text) / 2 > to.width();
    to_.text(at_end ? std::min(line_ + 8, to.width() - 2) : line_, 12, text, "label strong",
             at_end ? Anchor::end : Anchor::middle);
    to_.set_height(y_ + 4);
  }

 private:
  void draw(const MemoryBar& bar) {
    const double height = 26;
    if (to_.narrow()) {
      to_.text(left_, y_ + 12, bar.name, "label strong");
      if (bar.categories != nullptr) {
        to_.text(to_.width() - 4, y_ + 12, fmt::format("{:.2f} GiB", bar.total), "label",
                 Anchor::end);
      }
      y_ += 18;
    } else {
      to_.text(left_ - 10, y_ + 17, bar.name, "label", Anchor::end);
    }
    if (bar.categories == nullptr) {
      to_.rect(left_, y_, capacity_ * scale_, height, "refused");
      const auto room = static_cast<std::size_t>(capacity_ * scale_ / 6.6);
      std::string why = bar.refused;
      if (why.size() > room) why = why.substr(0, room - 3) + "\u2026";
      to_.text(left_ + 8, y_ + 17, why, "label");
      y_ += height + 12;
      return;
    }
    double x = left_;
    for (const auto& [name, bytes] : bar.categories->items()) {
      const double width = gib_value(bytes) * scale_;
      if (width <= 0) continue;
      const std::string style = category_style(name);
      to_.rect(x, y_, width, height, "part " + style,
               fmt::format("{}: {} GiB", spaced(name), gib(bytes)));
      const std::string number = fmt::format("{:.1f}", gib_value(bytes));
      if (width > text_width(number) + 8) {
        to_.text(x + width / 2, y_ + 17, number, "in-" + style, Anchor::middle);
      }
      x += width;
    }
    if (bar.resumed > bar.total) {
      to_.rect(x, y_, (bar.resumed - bar.total) * scale_, height, "resumed",
               fmt::format("resumed from a checkpoint: {:.2f} GiB", bar.resumed));
    }
    if (bar.band) whisker(*bar.band, y_ + height + 4);
    if (to_.narrow()) {  // beside the bars alone, since between them stand their names
      to_.line(line_, y_ - 2, line_, y_ + height + 2, "capacity");
    } else {
      beside(bar, height);
    }
    y_ += height + (bar.band ? 18 : 10);
  }

  void whisker(const std::pair<double, double>& band, double y) {
    const double low = left_ + band.first * scale_;
    const double high = left_ + band.second * scale_;
    to_.line(low, y, high, y, "whisker");
    to_.line(low, y - 4, low, y + 4, "whisker");
    to_.line(high, y - 4, high, y + 4, "whisker");
  }

  void beside(const MemoryBar& bar, double height) {
    const double end = std::max({bar.total, bar.resumed, capacity_});
    to_.text(left_ + end * scale_ + 8, y_ + height - 9, fmt::format("{:.2f} GiB", bar.total),
             bar.total > capacity_ ? "label strong" : "label");
  }

  Drawing& to_;
  double capacity_;
  double left_ = 0, scale_ = 0, line_ = 0, y_ = 0;
};

std::vector<std::string> used(const std::vector<MemoryBar>& bars) {
  std::vector<std::string> names;
  for (const MemoryBar& bar : bars) {
    if (bar.categories == nullptr) continue;
    for (const auto& [name, bytes] : bar.categories->items()) {
      const bool known = std::find(names.begin(), names.end(), name) != names.end();
      if (!known && bytes.get<std::int64_t>() > 0) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

std::string category_style(const std::string& category) {
  std::string style = "c-" + category;
  std::replace(style.begin(), style.end(), '_', '-');
  return style;
}

Figure memory_bars(const std::string& id,
                   const std::string& title,
                   const std::vector<MemoryBar>& bars,
                   double capacity) {
  std::string description;
  for (const MemoryBar& bar : bars) {
    description += bar.categories == nullptr
                       ? fmt::format("{}: refused. ", bar.name)
                       : fmt::format("{}: {:.2f} of {:.2f} GiB. ", bar.name, bar.total, capacity);
  }
  Figure drawn = figure(id, title, description, [&](Drawing& to) { Bars(to, bars, capacity); });
  for (const std::string& name : used(bars)) {
    drawn.legend.push_back({category_style(name), spaced(name)});
  }
  const auto any = [&](auto test) { return std::any_of(bars.begin(), bars.end(), test); };
  if (any([](const MemoryBar& bar) { return bar.resumed > bar.total; })) {
    drawn.legend.push_back({"resumed", "more, when resumed from a checkpoint"});
  }
  if (any([](const MemoryBar& bar) { return bar.band.has_value(); })) {
    drawn.legend.push_back({"whisker", "where the real number lies, 95 %"});
  }
  return drawn;
}

PageTable memory_table(const std::vector<MemoryBar>& bars, const std::string& heading) {
  PageTable table{
      .caption = "GiB of a GPU", .columns = {{heading, false}}, .rows = {}, .folded = true};
  const std::vector<std::string> names = used(bars);
  for (const std::string& name : names) table.columns.push_back({spaced(name)});
  table.columns.push_back({"needed"});
  for (const MemoryBar& bar : bars) {
    std::vector<std::string> row{bar.name};
    if (bar.categories != nullptr) {
      for (const std::string& name : names) row.push_back(gib(bar.categories->at(name)));
      row.push_back(fmt::format("{:.2f}", bar.total));
    } else {
      row.resize(names.size() + 1, "-");
      row.push_back(bar.refused);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace zeroplan
