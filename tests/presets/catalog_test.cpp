#include "presets/catalog.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "cost_model/rank/weights.hpp"
#include "tests/catch.hpp"
#include "tests/cpu_time.hpp"
#include "tests/presets/error_text.hpp"
#include "tests/source_dir.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Catch::Matchers::WithinRel;

TEST_CASE("each published parameter count is reproduced to the unit") {
  int checked = 0;
  for (const std::string& name : preset_names("models")) {
    CAPTURE(name);
    const CatalogModel model = find_model(name);
    CHECK(model.name == name);
    CHECK(model.spec.name == name);
    CHECK(model.assumptions.size() <= 2);
    if (!model.published_parameters) continue;
    ++checked;
    const bool with_mtp = model.published_scope == "decoder and MTP module";
    CHECK((with_mtp || model.published_scope == "decoder"));
    CHECK(*model.published_parameters ==
          parameter_count(model.spec) + (with_mtp ? mtp_parameter_count(model.spec) : 0));
  }
  REQUIRE(checked >= 79);
}

TEST_CASE("each model of the reference table has its count") {
  std::ifstream table(source_dir() + "/tests/reference/model_parameters.jsonl");
  int checked = 0;
  for (std::string line; std::getline(table, line); ++checked) {
    const auto row = nlohmann::json::parse(line);
    const std::string name = row.at("name");
    CAPTURE(name);
    CHECK(parameter_count(find_model(name).spec) == row.at("parameters").get<std::int64_t>());
  }
  REQUIRE(checked == 106);
}

TEST_CASE("the multi-token-prediction module accounts for the hub total") {
  // DeepSeek-V3 on the hub, without the scales of its FP8 blocks.
  const ModelSpec deepseek = find_model("deepseek-v3").spec;
  CHECK(parameter_count(deepseek) + mtp_parameter_count(deepseek) == 684'489'845'504);
  const ModelSpec glm = find_model("glm-4.5").spec;
  CHECK(parameter_count(glm) + mtp_parameter_count(glm) == 358'337'791'296);
  const ModelSpec air = find_model("glm-4.5-air").spec;
  CHECK(parameter_count(air) + mtp_parameter_count(air) == 110'468'824'832);
}

TEST_CASE("the models of papers have the printed size") {
  // 12 L h^2 and the embeddings: the papers print one or two digits.
  const auto billions = [](const char* name) {
    return static_cast<double>(parameter_count(find_model(name).spec)) / 1e9;
  };
  CHECK_THAT(billions("zero-1.5b"), WithinRel(1.5, 0.04));
  CHECK_THAT(billions("zero-8b"), WithinRel(8.0, 0.04));
  CHECK_THAT(billions("zero-40b"), WithinRel(40.0, 0.01));
  CHECK_THAT(billions("zero-60b"), WithinRel(60.0, 0.01));
  CHECK_THAT(billions("zero-100b"), WithinRel(100.0, 0.02));
  CHECK_THAT(billions("zero-170b"), WithinRel(170.0, 0.01));
  CHECK_THAT(billions("megatron-22b"), WithinRel(22.0, 0.01));
  CHECK_THAT(billions("megatron-175b"), WithinRel(175.0, 0.01));
  CHECK_THAT(billions("megatron-530b"), WithinRel(529.6, 0.001));
  CHECK_THAT(billions("megatron-1t"), WithinRel(1008.0, 0.001));
}

TEST_CASE("a model is loaded by name without a word, or with what its file leaves open") {
  std::vector<std::string> assumptions;
  CHECK(load_model("Qwen/Qwen2.5-72B", assumptions) == find_model("qwen2.5-72b").spec);
  CHECK(assumptions.empty());
  CHECK(load_model("llama4-scout", assumptions).family == "llama4_text");
  REQUIRE_FALSE(assumptions.empty());
  CHECK(says(assumptions.front(), "vision tower"));
}

TEST_CASE("a model is loaded from a config.json, or the directory that holds it") {
  const TemporaryFolder folder;
  const auto preset = nlohmann::json::parse(preset_json("models", "llama3-8b"));
  const std::string path = folder.write("My-Llama/config.json", preset.at("config").dump());
  std::vector<std::string> assumptions;
  ModelSpec expected = find_model("llama3-8b").spec;
  expected.name = "My-Llama";
  CHECK(load_model(path, assumptions) == expected);
  CHECK(load_model((folder.path() / "My-Llama").string(), assumptions) == expected);
  CHECK(load_model((folder.path() / "My-Llama/").string(), assumptions) == expected);
  CHECK(assumptions.empty());
  const std::string other = folder.write("tiny.json", preset.at("config").dump());
  CHECK(load_model(other, assumptions).name == "tiny");
}

TEST_CASE("a model is loaded from standard input") {
  std::istringstream text(
      R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 4,
          "vocab_size": 16, "tie_word_embeddings": true})");
  std::streambuf* const keyboard = std::cin.rdbuf(text.rdbuf());
  std::vector<std::string> assumptions;
  const ModelSpec model = load_model("-", assumptions);
  std::cin.rdbuf(keyboard);
  std::cin.clear();
  CHECK(model.name == "standard-input");
  CHECK(model.hidden_size == 8);
}

TEST_CASE("a model that is neither a name nor a file is refused") {
  std::vector<std::string> assumptions;
  const auto text = [&](std::string_view argument) {
    return error_text([&] { load_model(argument, assumptions); });
  };
  CHECK(text("qwen2.5-73b") ==
        "no model is called 'qwen2.5-73b', nearest is 'qwen2.5-72b'; nor is there such a file");
  CHECK(says(text("Qwen/Qwen25-72B"), "nearest is 'Qwen/Qwen2.5-72B'"));
  CHECK(says(text("./none.json"), "no such file"));
  const TemporaryFolder folder;
  CHECK(says(text(folder.path().string()), "config.json': no such file"));
  CHECK(says(text(folder.write("bad/config.json", "{")), "bad/config.json': line 1"));
}

TEST_CASE("finding one model does not read the others") {
  // More than a hundred are known: one takes a hundredth of the time of all, or all of it.
  const std::vector<std::string> names = preset_names("models");
  find_model(names.front());                             // what the first call does alone
  double one = std::numeric_limits<double>::infinity();  // the least: what else runs only adds
  for (int i = 0; i < 20; ++i) {
    one = std::min(one,
                   tests::cpu_seconds([] { find_model("Qwen/Qwen3-Coder-480B-A35B-Instruct"); }));
  }
  const double all = tests::cpu_seconds([&] {
    for (const std::string& name : names) find_model(name);
  });
  CHECK(one < all / 10);
}
