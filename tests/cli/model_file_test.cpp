// Models that a file describes, or standard input.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/fit.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using tests::fit;
using tests::Json;

TEST_CASE("a config.json, a folder and standard input are the catalog's model") {
  const std::string config =
      R"({"model_type": "qwen2", "hidden_size": 8192, "intermediate_size": 29568,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 152064,
    "tie_word_embeddings": false, "max_position_embeddings": 131072})";
  const TemporaryFolder folder;
  const std::string path = folder.write("mine/config.json", config);
  const Json catalog = fit("Qwen/Qwen2.5-72B --gpus 128xA100-80GB");
  for (const std::string& model : {path, (folder.path() / "mine").string(), "- <" + path}) {
    const bool input = model[0] == '-';
    const Json a =
        input ? Json::parse(tests::zeroplan("fit - --gpus 128xA100-80GB --json <" + path).output)
              : fit(model + " --gpus 128xA100-80GB");
    REQUIRE(a.at("stages") == catalog.at("stages"));
    REQUIRE(a.at("model").at("parameters") == 72706203648);
  }
}

// Python writes what JSON has not, and so do the files of state spaces.
TEST_CASE("an answer repeats a file with Infinity as JSON, which a plan is read from") {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "config.json",
      R"({"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256, "limits": [0, Infinity],
      "tie_word_embeddings": false})");
  const Json a = fit(path + " --gpus 8xA100-80GB");
  CHECK(a.at("model").at("config").at("limits") == Json({0, nullptr}));
  const Json b = Json::parse(tests::zeroplan("fit - --gpus 8xA100-80GB --json <" + path).output);
  CHECK(b.at("model").at("config") == a.at("model").at("config"));
  const std::string plan = folder.write("plan.json", a.dump());
  CHECK(fit(plan).at("stages") == a.at("stages"));
}
