// How do people read what memory and speeds were off by? Front doors: memory_text,
// calibration_text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/out/report.hpp"
#include "cli/out/text_table.hpp"
#include "cli/overlay/overlay_report.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t shown_sizes = 8;

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes) / static_cast<double>(mebi));
}

// The first of several, and how many others there are.
std::string first_of(const std::vector<std::string>& names) {
  if (names.empty()) return "-";
  return names.size() == 1 ? names.front()
                           : fmt::format("{} and {} more", names.front(), names.size() - 1);
}

std::string sizes_text(const MemoryOverlay& memory, std::size_t width) {
  std::vector<std::string> size, measured, predicted, off, tensors, holders;
  for (const SizeRow& row : memory.sizes) {
    if (row.difference() == 0 || size.size() == shown_sizes) break;
    size.push_back(mebibytes(row.bytes));
    measured.push_back(with_thousands(row.measured));
    predicted.push_back(with_thousands(row.predicted));
    off.push_back(fmt::format("{:+.2f}", static_cast<double>(row.difference()) / mebi));
    tensors.push_back(first_of(row.tensors));
    holders.push_back(first_of(row.holders));
  }
  if (size.empty()) return "  every size is held as often as predicted\n";
  TextTable table(1);
  table.add("MiB each", std::move(size));
  table.add("held", std::move(measured));
  table.add("predicted", std::move(predicted));
  table.add("MiB off", std::move(off));
  table.add("predicted as", std::move(tensors), Align::left);
  table.add("held by", std::move(holders), Align::left);
  return table.text(width);
}

}  // namespace

std::string memory_text(const MemoryOverlay& memory, std::size_t width) {
  std::string out = fmt::format(
      "\n  memory at its highest: {:.2f} GiB, predicted {:.2f} GiB; {:.2f} GiB reserved in the "
      "end\n",
      gibibytes(Bytes{memory.measured}), gibibytes(Bytes{memory.predicted}),
      gibibytes(Bytes{memory.reserved}));
  std::vector<std::string> name, predicted, found;
  for (const CategoryRow& row : memory.categories) {
    name.push_back(spaced(name_of(row.category)));
    predicted.push_back(mebibytes(row.predicted));
    found.push_back(mebibytes(row.found));
  }
  TextTable table(1);
  table.add("", std::move(name), Align::left);
  table.add("predicted MiB", std::move(predicted));
  table.add("held in these sizes", std::move(found));
  out += table.text(width) + "\n" + sizes_text(memory, width);
  if (memory.unmatched > 0) {
    out += fmt::format("  {} events contradict the others and are left out\n", memory.unmatched);
  }
  return out + "\n";
}

std::string calibration_text(const Calibration& calibration, double measured) {
  std::string out = fmt::format(
      "\n  with the calibrated cluster the step takes {:.4f} s, {:+.1f} % of {:.4f} s\n",
      calibration.seconds, 100 * (calibration.seconds / measured - 1), measured);
  for (const std::string& line : calibration.taken) out += fmt::format("    {}\n", line);
  for (const std::string& line : calibration.left) out += fmt::format("    not: {}\n", line);
  return out + "\n";
}

}  // namespace zeroplan
