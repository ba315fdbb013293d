// How full is each stage, at a glance? Front door: memory_bars.
#include "cli/out/memory_bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "cli/out/report.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t numbers_width = 19;  // " 63.89 of 79.14 GiB"

struct Part {
  Category category;
  char letter;
  int color;  // of 256, told apart by any color vision, as the page's are (Okabe and Ito 2008)
};

constexpr std::array<Part, 11> parts{{{Category::parameters, 'P', 25},
                                      {Category::gradients, 'G', 214},
                                      {Category::master_parameters, 'M', 74},
                                      {Category::optimizer_states, 'O', 36},
                                      {Category::activations, 'A', 166},
                                      {Category::communication_buffers, 'B', 228},
                                      {Category::temporaries, 'T', 175},
                                      {Category::workspace, 'W', 141},
                                      {Category::fragmentation, 'F', 250},
                                      {Category::communicators, 'N', 137},
                                      {Category::context, 'C', 241}}};

// Stages [first, last] with equal bytes.
struct BarRow {
  std::size_t first, last;
};

bool alike(const StageMemory& a, const StageMemory& b) {
  return std::ranges::all_of(
      parts, [&](const Part& p) { return a.memory[p.category] == b.memory[p.category]; });
}

std::vector<BarRow> rows_of(const Estimate& estimate) {
  std::vector<BarRow> rows;
  for (std::size_t i = 0; i < estimate.stages.size(); ++i) {
    if (!rows.empty() && alike(estimate.stages[rows.back().first], estimate.stages[i])) {
      rows.back().last = i;
    } else {
      rows.push_back({i, i});
    }
  }
  return rows;
}

std::string label(const BarRow& row) {
  return row.first == row.last ? std::to_string(row.first)
                               : fmt::format("{}-{}", row.first, row.last);
}

std::string cell(const Part& part, std::size_t count, const BarStyle& style) {
  if (count == 0) return "";
  if (!style.blocks || !style.color) return std::string(count, part.letter);
  std::string out = fmt::format("\x1b[38;5;{}m", part.color);
  for (std::size_t i = 0; i < count; ++i) out += "\u2588";
  return out + "\x1b[0m";
}

// Cells end where their bytes do, rounded, so that they add up to the whole bar.
std::string bar(const MemoryBreakdown& memory, double cells_per_byte, const BarStyle& style) {
  std::string out;
  double bytes = 0;
  std::size_t drawn = 0;
  for (const Part& part : parts) {
    bytes += static_cast<double>(memory[part.category].count());
    const auto end = static_cast<std::size_t>(std::lround(bytes * cells_per_byte));
    out += cell(part, end - drawn, style);
    drawn = end;
  }
  return out;
}

std::string legend(const Estimate& estimate, const BarStyle& style) {
  std::string out = "  ";
  std::size_t width = 2;
  for (const Part& part : parts) {
    const auto has = [&](const StageMemory& s) { return s.memory[part.category] > Bytes{}; };
    if (std::ranges::none_of(estimate.stages, has)) continue;
    const std::string name = spaced(name_of(part.category));
    if (width + name.size() + 4 > style.width) {
      out += "\n  ";
      width = 2;
    }
    out += fmt::format("  {} {}", cell(part, 1, style), name);
    width += name.size() + 4;
  }
  return out + "\n";
}

}  // namespace

std::string memory_bars(const Estimate& estimate, const BarStyle& style) {
  const std::vector<BarRow> rows = rows_of(estimate);
  std::size_t label_width = 0;
  for (const BarRow& row : rows) label_width = std::max(label_width, label(row).size());
  const std::size_t beside = 4 + label_width + 2 + numbers_width;
  const std::size_t width = std::min(style.width, widest_drawing);
  const std::size_t room = width > beside + 10 ? width - beside : 10;
  Bytes most = estimate.capacity;
  for (const StageMemory& stage : estimate.stages) most = std::max(most, stage.memory.device());
  const double cells_per_byte =
      static_cast<double>(room - 1) / static_cast<double>(std::max<std::int64_t>(1, most.count()));
  const auto cells = [&](Bytes bytes) {
    return static_cast<std::size_t>(
        std::lround(static_cast<double>(bytes.count()) * cells_per_byte));
  };
  const std::size_t capacity = cells(estimate.capacity);
  std::string out;
  for (const BarRow& row : rows) {
    const StageMemory& stage = estimate.stages[row.first];
    const std::size_t filled = cells(stage.memory.device());
    out += fmt::format("    {:>{}} {}", label(row), label_width,
                       bar(stage.memory, cells_per_byte, style));
    if (filled < capacity) out += std::string(capacity - filled, ' ');
    out += "|" + std::string(room - 1 - std::max(filled, capacity), ' ');
    out += fmt::format("{:>7.2f} of {:.2f} GiB\n", gibibytes(stage.memory.device()),
                       gibibytes(estimate.capacity));
  }
  return out + legend(estimate, style);
}

}  // namespace zeroplan
