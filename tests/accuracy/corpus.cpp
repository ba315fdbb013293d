// Which rows does a file hold? Front door: read_corpus.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "presets/input_error.hpp"
#include "tests/accuracy/row.hpp"

namespace zeroplan::accuracy {

std::vector<Row> read_corpus(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path)) {
    throw InputError(fmt::format("cannot read {}", path.string()));
  }
  std::vector<Row> rows;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    try {
      rows.push_back(read_row(nlohmann::json::parse(line)));
    } catch (const nlohmann::json::exception& error) {
      throw InputError(
          fmt::format("{}:{}: not a row of a corpus: {}", path.string(), number, error.what()));
    }
  }
  if (rows.empty()) throw InputError(fmt::format("{}: holds no row", path.string()));
  return rows;
}

}  // namespace zeroplan::accuracy
