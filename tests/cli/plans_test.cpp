// A plan that one command wrote is a MODEL for every other, and says the whole question.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/answer.hpp"
#include "tests/cli/fit.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using tests::answer;
using tests::Json;
using tests::require_refused;

namespace {

void require_same_numbers(const Json& again, const Json& plan) {
  for (const char* field : {"model", "cluster", "runtime", "layout", "settings", "capacity_bytes",
                            "peak", "stages", "host", "communication", "step", "verdict"}) {
    CAPTURE(field);
    REQUIRE(again.at(field) == plan.at(field));
  }
  REQUIRE(again.at("chosen").empty());
}

const std::string own_model =
    R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
  "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 8,
  "vocab_size": 32000, "tie_word_embeddings": false})";

}  // namespace

TEST_CASE("each plan of a sweep answers as its row says, from a file or a pipe", "[release]") {
  const TemporaryFolder folder;
  for (const std::string question :
       {"llama3-70b --gpus 64xH100-80GB --top 4", "mixtral-8x7b --gpus 16xH100-80GB --top 3",
        "llama3-8b --gpus 8xH100-80GB --runtime fsdp2 --top 3",
        "llama2-7b --gpus 4xRTX-4090 --runtime deepspeed --top 3",
        "llama3-8b --cluster aws-p4d --gpus 16 --top 2 --precision bf16 --optimizer sgd"}) {
    CAPTURE(question);
    const std::string path = (folder.path() / "plans.json").string();
    const tests::Run swept = tests::zeroplan("sweep " + question + " --json --save " + path);
    REQUIRE(swept.exit_code == 0);
    const Json plans = Json::parse(swept.output).at("plans");
    REQUIRE(plans.size() >= 2);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const std::string row = path + "#" + std::to_string(i + 1);
      require_same_numbers(answer("fit " + row), plans.at(i));
    }
    const Json piped = Json::parse(tests::shell("'" ZEROPLAN_BINARY "' fit " + path +
                                                "#2 --json | '" ZEROPLAN_BINARY "' fit - --json")
                                       .output);
    require_same_numbers(piped, plans.at(1));
  }
}

TEST_CASE("a plan is a MODEL for every command") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "plans.json").string();
  const Json swept = answer("sweep llama3-8b --gpus 8xH100-80GB --top 3 --save " + path);
  const std::string plan =
      folder.write("plan.json", answer("fit llama3-8b --gpus 8xH100-80GB").dump());
  for (const std::string& model : {path + "#2", plan}) {
    CAPTURE(model);
    const Json fit = answer("fit " + model);
    const Json explained = answer("explain " + model);
    REQUIRE(explained.at("device_bytes") == fit.at("peak").at("device_bytes"));
    REQUIRE(explained.at("step").at("seconds") == fit.at("step").at("seconds"));
    REQUIRE(answer("timeline " + model).at("phases") == fit.at("phases"));
    const Json again = answer("sweep " + model);
    REQUIRE(again.at("plans").size() == 1);
    REQUIRE(again.at("plans").at(0).at("stages") == fit.at("stages"));
    REQUIRE(answer("compare " + model + " " + plan).at("a").at("stages") == fit.at("stages"));
    const std::string launch = folder.write("launch", tests::zeroplan("export " + model).output);
    const Json launched = answer("fit llama3-8b --gpus 8xH100-80GB --config " + launch);
    REQUIRE(launched.at("layout") == fit.at("layout"));
    REQUIRE(launched.at("stages") == fit.at("stages"));
  }
  const Json validated = answer("validate " + path + "#1 --backend host --steps 1 --ranks 2");
  REQUIRE(validated.at("plan").at("micro_batch") ==
          swept.at("plans").at(0).at("layout").at("micro_batch"));
}

TEST_CASE("what is typed beside a plan wins, openly") {
  const TemporaryFolder folder;
  const std::string plan =
      folder.write("plan.json", answer("fit llama3-8b --gpus 16xH100-80GB --tp 2 --pp 1 --zero 1 "
                                       "--global-batch 64 --set overlap_grad_reduce=true")
                                    .dump());
  const Json other = answer("fit " + plan + " --tp 4 --gradient-accumulation 4");
  REQUIRE(other.at("layout").at("tp") == 4);
  REQUIRE(other.at("layout").at("gradient_accumulation") == 4);
  const std::string notes = other.at("assumptions").dump();
  REQUIRE_THAT(notes, ContainsSubstring("--tp 4, not 2 as " + plan + " says"));
  REQUIRE_THAT(notes, ContainsSubstring("--gradient-accumulation 4, not --global-batch 64"));
  REQUIRE(answer("fit " + plan + " --gpus 32").at("cluster").at("gpus") == 32);
  REQUIRE(answer("fit " + plan + " --gpus 32").at("cluster").at("gpu") == "H100-80GB");
  REQUIRE(answer("fit " + plan + " --gpus 16xH200").at("cluster").at("gpu") == "H200");
  const Json fsdp =
      answer("fit " + plan + " --runtime fsdp2 --zero 3 --micro-batch 1 --recompute full");
  REQUIRE(!fsdp.at("settings").contains("overlap_grad_reduce"));
  REQUIRE_THAT(fsdp.at("assumptions").dump(), ContainsSubstring("are left out"));
}

TEST_CASE("a plan carries a model and a cluster that no catalog has") {
  const TemporaryFolder folder;
  const std::string model = folder.write("mine.json", own_model);
  const Json cluster{{"name", "lab"},
                     {"gpus_per_node", 4},
                     {"nodes", 2},
                     {"intra_node", "pcie"},
                     {"gpu",
                      {{"name", "mine"},
                       {"memory_bytes", std::int64_t{48} << 30},
                       {"tflops", {{"bf16", 200}}},
                       {"memory_gigabytes_per_second", 900}}},
                     {"intra_node_gigabytes_per_second_per_direction", 20},
                     {"network_cards", 1},
                     {"network_gigabits_per_second_per_card", 100}};
  const std::string lab = folder.write("lab.json", cluster.dump());
  const Json asked = answer("fit " + model + " --cluster " + lab);
  const std::string plan = folder.write("plan.json", asked.dump());
  std::filesystem::remove(model);
  std::filesystem::remove(lab);
  require_same_numbers(answer("fit " + plan), asked);
}

TEST_CASE("a file that is no plan, or has no such row, is refused") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "plans.json").string();
  answer("sweep llama3.2-1b --gpus 8xH100-80GB --top 2 --save " + path);
  require_refused("fit " + path, "say which, FILE#1 to FILE#2");
  require_refused("fit " + path + "#3", "holds 2 plans");
  require_refused("fit " + path + "#0", "'0': must be a whole number");
  require_refused("fit " + path + "#x", "'x': must be a whole number");
  const std::string model = folder.write("mine.json", own_model);
  require_refused("fit " + model + "#1 --gpus 8xH100", "not plans of a sweep");
  const std::string other = folder.write("other.json", R"({"schema": "zeroplan.compare/1"})");
  require_refused("fit " + other, "not a plan");
  require_refused("sweep llama3.2-1b --gpus 8xH100 --save /nowhere/plans.json", "cannot write");
  require_refused("fit llama3-8b --gpus 8xH100 --config nowhere.json", "no such file");
  const std::string noise = folder.write("noise.json", R"({"colour": "blue"})");
  require_refused("fit llama3-8b --gpus 8xH100 --config " + noise, "no key of it");
}

TEST_CASE("a plan of another version says so, and one without versions does not") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "plan.json";
  Json plan = answer("fit llama3-8b --gpus 8xH100-80GB --tp 1 --pp 1 --micro-batch 1");
  const auto notes = [&] {
    std::ofstream(path) << plan.dump();
    std::string all;
    const Json again = answer("fit " + path);
    for (const Json& line : again.at("assumptions")) all += line.get<std::string>();
    return all;
  };
  REQUIRE_THAT(notes(), !ContainsSubstring("another version"));
  plan["versions"]["constants"] = "2025-01-01";
  REQUIRE_THAT(notes(), ContainsSubstring("another version (constants 2025-01-01, now 20"));
  plan.erase("versions");
  REQUIRE_THAT(notes(), !ContainsSubstring("another version"));
}
