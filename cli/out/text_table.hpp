#pragma once
// Columns of a table for people.

#include <cstddef>
#include <string>
#include <vector>

namespace zeroplan {

enum class Align { left, right };

class TextTable {
 public:
  /// The first `keys` columns tell the rows apart.
  explicit TextTable(std::size_t keys) : keys_(keys) {}

  void add(std::string name, std::vector<std::string> cells, Align align = Align::right);

  /// Each column as wide as its widest cell. Columns beyond `width` letters stand below, beside the
  /// keys once more; 0: all side by side.
  std::string text(std::size_t width) const;

 private:
  struct Column {
    std::vector<std::string> cells;  // the name first
    Align align;
    std::size_t width;
  };
  std::string block(const std::vector<const Column*>& shown) const;

  std::size_t keys_;
  std::vector<Column> columns_;
};

}  // namespace zeroplan
