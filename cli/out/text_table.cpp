// How do columns stand side by side? Front door: TextTable.
#include "cli/out/text_table.hpp"

#include <algorithm>

#include "cli/out/fold.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t gap = 2;

}  // namespace

void TextTable::add(std::string name, std::vector<std::string> cells, Align align) {
  cells.insert(cells.begin(), std::move(name));
  std::size_t width = 0;
  for (const std::string& cell : cells) width = std::max(width, letters(cell));
  columns_.push_back({std::move(cells), align, width});
}

std::string TextTable::block(const std::vector<const Column*>& shown) const {
  std::string out;
  for (std::size_t row = 0; row < shown.front()->cells.size(); ++row) {
    std::string line;
    for (const Column* column : shown) {
      const std::string& cell = column->cells[row];
      const std::string padding(column->width - letters(cell), ' ');
      if (column != shown.front()) line.append(gap, ' ');
      line += column->align == Align::right ? padding + cell : cell + padding;
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string TextTable::text(std::size_t width) const {
  std::vector<const Column*> keys;
  std::size_t of_keys = 0;
  for (std::size_t i = 0; i < std::min(keys_, columns_.size()); ++i) {
    of_keys += columns_[i].width + (i > 0 ? gap : 0);
    keys.push_back(&columns_[i]);
  }
  std::string out;
  std::vector<const Column*> shown = keys;
  std::size_t used = of_keys;
  for (std::size_t i = keys.size(); i < columns_.size(); ++i) {
    const std::size_t more = columns_[i].width + gap;
    if (width > 0 && used + more > width && shown.size() > keys.size()) {
      out += block(shown) + "\n";
      shown = keys;
      used = of_keys;
    }
    shown.push_back(&columns_[i]);
    used += more;
  }
  return out + block(shown);
}

}  // namespace zeroplan
