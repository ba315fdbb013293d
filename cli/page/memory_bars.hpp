#pragma once
// Private to the page: bars of what memory is made of.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/page/page.hpp"

namespace zeroplan {

struct MemoryBar {
  std::string name;
  const nlohmann::ordered_json* categories = nullptr;  // null: no bar but `refused`
  double total = 0;                                    // GiB
  std::optional<std::pair<double, double>> band;       // GiB
  double resumed = 0;                                  // GiB that a run from a checkpoint has
  std::string refused = {};
};

/// Bars of memory one below the other, with a line where the memory of a GPU ends.
Figure memory_bars(const std::string& id,
                   const std::string& title,
                   const std::vector<MemoryBar>& bars,
                   double capacity);

/// Bars of memory as rows of a table: GiB of each category that some bar has.
PageTable memory_table(const std::vector<MemoryBar>& bars, const std::string& heading);

/// The class of a category's color.
std::string category_style(const std::string& category);

}  // namespace zeroplan
