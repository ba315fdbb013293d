// Every command that takes a question speaks of the plan that fit answers it with.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/fit.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using tests::Json;

namespace {

Json answer(const std::string& arguments) {
  const tests::Run run = tests::zeroplan(arguments + " --json");
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code == 0);
  return Json::parse(run.output);
}

}  // namespace

TEST_CASE("no command contradicts fit about the same question", "[release]") {
  const TemporaryFolder folder;
  for (const std::string question :
       {"qwen2.5-7b --gpus 8xA100-80GB", "llama3-8b --gpus 8xH100-80GB --tp 2",
        "llama3-8b --gpus 8xH100-80GB --runtime fsdp2 --global-batch 64",
        "llama2-7b --gpus 4xRTX4090 --runtime deepspeed",
        "deepseek-v2-lite --gpus 8xH100-80GB --tie 10"}) {
    CAPTURE(question);
    const Json fit = answer("fit " + question);
    const Json explained = answer("explain " + question);
    REQUIRE(explained.at("device_bytes") == fit.at("peak").at("device_bytes"));
    REQUIRE(explained.at("tensor") == fit.at("peak").at("tensor"));
    REQUIRE(explained.at("step").at("seconds") == fit.at("step").at("seconds"));
    REQUIRE(answer("timeline " + question).at("phases") == fit.at("phases"));
    const Json swept = answer("sweep " + question);
    const Json& taken = swept.at("plans").at(swept.at("recommended").get<std::size_t>());
    for (const char* field : {"layout", "settings", "stages", "step"}) {
      REQUIRE(taken.at(field) == fit.at(field));
    }
    REQUIRE(swept.at("plans").at(0).at("layout") == fit.at("fastest").at("layout"));

    const std::string plan = folder.write("plan.json", fit.dump());
    const Json both = answer("compare " + plan + " " + plan);
    const Json sides = answer("compare " + question + " --a \"\" --b \"\"");
    for (const Json* side : {&both.at("a"), &sides.at("a")}) {
      for (const char* field : {"layout", "settings", "stages"}) {
        REQUIRE(side->at(field) == fit.at(field));
      }
    }
  }
}

TEST_CASE("what is exported of an open question is the recommended plan") {
  const TemporaryFolder folder;
  for (const std::string question :
       {"llama3-70b --gpus 64xH100-80GB", "llama3-8b --gpus 8xH100-80GB"}) {
    CAPTURE(question);
    const std::string path =
        folder.write("arguments", tests::zeroplan("export " + question).output);
    const Json again =
        Json::parse(tests::zeroplan("fit " + question + " $('" ZEROPLAN_BINARY "' import " + path +
                                    " --quiet) --json")
                        .output);
    const Json asked = answer("fit " + question);
    REQUIRE(again.at("layout") == asked.at("layout"));
    REQUIRE(again.at("stages") == asked.at("stages"));
  }
}

TEST_CASE("validate runs the plan that fit recommends for its engine") {
  const std::string question = "llama3-8b --gpus 4xA100-80GB --runtime zeroplan";
  const Json fit = answer("fit " + question);
  const Json plan = answer("validate " + question + " --backend host").at("plan");
  for (const char* field : {"dp", "zero", "micro_batch", "recompute"}) {
    REQUIRE(plan.at(field) == fit.at("layout").at(field));
  }
}

TEST_CASE("the fastest stands beside the recommended, no more than the tie away") {
  for (const auto& [tie, bound] : {std::pair{"", 0.03}, {" --tie 10", 0.1}, {" --tie 0%", 0.0}}) {
    CAPTURE(tie);
    const Json a = answer(std::string("fit llama3-8b --gpus 8xH100-80GB") + tie);
    const double taken = a.at("step").at("tokens_per_second_per_gpu");
    const Json& fastest = a.at("fastest");
    REQUIRE(fastest.at("tokens_per_second_per_gpu").get<double>() >= taken);
    REQUIRE(taken >= (1 - bound) * fastest.at("tokens_per_second_per_gpu").get<double>());
    REQUIRE(fastest.at("step_seconds").get<double>() > 0);
  }
  REQUIRE(!answer("fit llama3-8b --gpus 8xH100-80GB --tp 1 --pp 1 --recompute full --micro-batch 1")
               .contains("fastest"));
  for (const char* wrong : {"-1", "101", "three", "3GiB"}) {
    const tests::Run run =
        tests::zeroplan(std::string("fit llama3-8b --gpus 8xH100-80GB --tie ") + wrong);
    REQUIRE(run.exit_code == 2);
    REQUIRE_THAT(run.errors, ContainsSubstring("--tie"));
  }
}
