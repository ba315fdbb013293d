// Scripts and configurations as people publish them: what each means, or why it is refused. A row
// of expected.jsonl is a file of texts/ with its options, and with what may change the answer and
// is not understood; or with words of the refusal.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "presets/text_file.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"
#include "tests/presets/imported.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;

namespace {

const std::string folder = source_dir() + "/tests/presets/configuration";

// The texts name files beside them.
std::string text_of(const std::string& file) {
  std::string text = read_text_file(folder + "/texts/" + file);
  const std::string mark = "{folder}";
  for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at)) {
    text.replace(at, mark.size(), folder + "/texts");
  }
  return text;
}

std::string typed(const std::vector<TypedOption>& options) {
  std::string text;
  for (const TypedOption& option : options) {
    text += (text.empty() ? "" : " ") + option.flag + " " + option.value;
  }
  return text;
}

}  // namespace

TEST_CASE("published scripts and configurations mean what they say, or are refused in words") {
  std::ifstream rows(folder + "/expected.jsonl");
  std::set<std::string> seen;
  for (std::string line; std::getline(rows, line);) {
    const auto row = nlohmann::json::parse(line);
    const std::string file = row.at("file");
    CAPTURE(file);
    seen.insert(file);
    if (row.contains("refused")) {
      const std::string refusal = error_text([&] { tests::import(text_of(file)); });
      CHECK_THAT(refusal, ContainsSubstring(row.at("refused").get<std::string>()));
      CHECK(refusal.find('\n') == refusal.npos);
      continue;
    }
    const ImportedConfiguration said = tests::import(text_of(file));
    CHECK(said.format == row.at("format").get<std::string>());
    CHECK(typed(said.options) == row.at("options").get<std::string>());
    CHECK(said.not_understood == row.value("not_understood", std::vector<std::string>()));
    CHECK(said.ranks.value_or(0) == row.value("ranks", std::int64_t{0}));
    CHECK(!said.model_config.empty() == row.value("whole_model", false));
  }
  std::set<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/texts")) {
    there.insert(entry.path().filename().string());
  }
  CHECK(seen == there);
  CHECK(seen.size() >= 40);
}
