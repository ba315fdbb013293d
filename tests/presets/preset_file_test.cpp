#include "presets/preset_file.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "presets/nearest_name.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"

using namespace zeroplan;

TEST_CASE("a preset is called as its file, and no two answer to one name") {
  std::map<std::string, std::string> owner;  // kind/name in lower case -> preset
  for (const EmbeddedPreset& preset : embedded_presets()) {
    CAPTURE(preset.kind, preset.name);
    const auto document = nlohmann::json::parse(preset.json);
    CHECK(document.at("name") == preset.name);
    CHECK(document.at("source").get<std::string>().size() > 5);
    std::vector<std::string> names{std::string(preset.name)};
    for (const auto& alias : document.value("aliases", nlohmann::json::array())) {
      names.push_back(alias);
    }
    if (document.contains("huggingface")) names.push_back(document.at("huggingface"));
    for (const std::string& name : names) {
      CAPTURE(name);
      CHECK(owner.emplace(std::string(preset.kind) + "/" + lower_case(name), preset.name).second);
    }
  }
}

TEST_CASE("a preset is found by file name, alias and hub id, whatever the case") {
  CHECK(get_preset("models", "qwen2.5-72b").name == "qwen2.5-72b");
  CHECK(get_preset("models", "Qwen/Qwen2.5-72B").name == "qwen2.5-72b");
  CHECK(get_preset("models", "qwen/qwen2.5-72b").name == "qwen2.5-72b");
  CHECK(get_preset("models", "bloom").name == "bloom-176b");
  CHECK(get_preset("gpus", "a100-80gb").name == "A100-80GB");
  CHECK(get_preset("gpus", "H100").name == "H100-80GB");
  CHECK(get_preset("clusters", "DGX-A100").name == "dgx-a100-80gb");
  CHECK(find_preset("models", "A100") == nullptr);
  CHECK(find_preset("models", "") == nullptr);
  CHECK(find_preset("models", "aliases") == nullptr);  // a key of every file, the name of none
}

TEST_CASE("a wrong name is refused with the nearest one") {
  CHECK(error_text([] { get_preset("models", "qwen2.5-27b"); }) ==
        "no model is called 'qwen2.5-27b', nearest is 'qwen2.5-72b'");
  CHECK(error_text([] { get_preset("gpus", "A100-80"); }) == "");  // an alias
  CHECK(says(error_text([] { get_preset("gpus", "H1000-80GB"); }), "nearest is 'H100-80GB'"));
  CHECK(says(error_text([] { preset_names("gpu"); }), "nearest is 'gpus'"));
}

TEST_CASE("names are listed in order, and the text of each can be shown") {
  const std::vector<std::string> models = preset_names("models");
  CHECK(models.size() >= 106);
  CHECK(std::is_sorted(models.begin(), models.end()));
  CHECK(preset_names("gpus").size() >= 35);
  CHECK(says(preset_json("gpus", "H200"), "\"memory_bytes\""));
}
