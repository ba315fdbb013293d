// Tracers run where zeroplan was copied to, without the checkout that they come from.
#include "cli/validate/tracer_files.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>

#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;

namespace {

// The module of `import X` and `from X import ...`; empty for other lines.
std::string imported(const std::string& line) {
  std::istringstream words(line);
  std::string first, module;
  words >> first >> module;
  return first == "import" || first == "from" ? module : "";
}

bool is_embedded(const std::string& file) {
  return std::ranges::find(tracer_files(), file, &TracerFile::name) != tracer_files().end();
}

}  // namespace

TEST_CASE("whatever module of ours a tracer imports is in the binary with it") {
  const std::filesystem::path folder = source_dir() + "/validator/pytorch";
  int modules = 0;
  for (const TracerFile& file : tracer_files()) {
    std::istringstream lines{std::string(file.text)};
    for (std::string line; std::getline(lines, line);) {
      const std::string module = imported(line);
      if (module.empty() || !std::filesystem::exists(folder / (module + ".py"))) continue;
      ++modules;
      CAPTURE(file.name, module);
      CHECK(is_embedded(module + ".py"));
    }
  }
  CHECK(modules > 30);
}
