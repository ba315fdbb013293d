// A run on this machine beside its prediction.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

namespace {

Json validate(const std::string& arguments) {
  const tests::Run run = tests::zeroplan("validate " + arguments + " --backend host --json");
  CAPTURE(arguments, run.errors);
  REQUIRE(run.exit_code == 0);
  return Json::parse(run.output);
}

const std::string plan = "llama3-8b --gpus 16xH100-80GB --tp 2 --pp 2 --zero 1 --seq 2048 ";

}  // namespace

TEST_CASE("a plan is shrunk, run, and found to be what was predicted") {
  const Json a = validate(plan + "--ranks 4");
  REQUIRE(a.at("schema") == "zeroplan.validate/1");
  REQUIRE(a.at("verdict") == "agrees");
  REQUIRE(a.at("backend") == "host");
  REQUIRE(a.at("backend_reason") == "as asked");
  REQUIRE(a.at("ranks").size() == 4);
  REQUIRE(a.at("run").at("tp") == 2);
  REQUIRE(a.at("run").at("pp") == 2);
  REQUIRE_FALSE(a.at("run_changes").empty());
  for (const Json& rank : a.at("ranks")) {
    std::int64_t sum = 0;
    for (const Json& category : rank.at("categories")) {
      REQUIRE(category.at("difference") == 0);
      sum += category.at("measured").get<std::int64_t>();
    }
    REQUIRE(sum == rank.at("allocated_bytes").at("measured"));
    REQUIRE_FALSE(rank.at("calls").empty());
    for (const Json& call : rank.at("calls")) {
      REQUIRE(call.at("measured_calls") == call.at("predicted_calls"));
    }
  }
  REQUIRE(a.at("losses").size() == 5);
  const Json& time = a.at("time");
  REQUIRE(time.at("step").at("measured_seconds") > time.at("products").at("measured_seconds"));
  REQUIRE(time.at("products").at("measured_seconds") > 0);
  REQUIRE_FALSE(time.at("calls").empty());
  REQUIRE(time.at("step").at("predicted_seconds").is_null());  // of a GPU, which a host is not
  REQUIRE(a.at("full_plan").size() == 2);
  REQUIRE(a.at("stages").at(0).at("parameters_equal") == true);
}

TEST_CASE("what Megatron runs by default is run: sequence parallelism, and a tied head") {
  const Json a = validate(
      "gpt2-medium --runtime megatron --tp 2 --pp 2 --gpus 16xH100-80GB --zero 1 --ranks 4");
  REQUIRE(a.at("plan_changes").dump().find("tied") == std::string::npos);
  REQUIRE(a.at("plan_changes").dump().find("sequence") == std::string::npos);
  const std::string calls = a.at("ranks").at(0).at("calls").dump();
  for (const char* group : {"\"embedding\"", "\"tp\"", "reduce-scatter", "all-gather"}) {
    CAPTURE(group);
    REQUIRE(calls.find(group) != std::string::npos);
  }
}

TEST_CASE("what validate says of the full plan is what fit says") {
  const std::string engine = plan + "--runtime zeroplan ";
  const Json fit = Json::parse(tests::zeroplan("fit " + engine + "--json").output);
  const Json counted = validate(engine + "--as-rank stage=1").at("full_plan").at(0);
  for (const auto& [category, bytes] : counted.at("categories").items()) {
    CAPTURE(category);
    REQUIRE(bytes.at("measured") == fit.at("stages").at(1).at("categories").at(category));
  }
}

TEST_CASE("a plan of another runtime is run as the engine can, and that is said") {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("plan.json", tests::zeroplan("fit " + plan + "--json").output);
  const Json a = validate(path + " --ranks 1");
  REQUIRE(a.at("plan_changes").dump().find("runtime megatron -> zeroplan") != std::string::npos);
  REQUIRE(a.at("run").at("dp") == 1);
}

TEST_CASE("rows and the verdict alone") {
  const tests::Run csv =
      tests::zeroplan("validate " + plan + "--as-rank stage=0 --backend host --csv");
  REQUIRE(csv.output.rfind("stage,dp_rank,tp_rank,category,predicted,measured,difference\n", 0) ==
          0);
  const tests::Run quiet = tests::zeroplan("validate " + plan + "--ranks 1 --backend host --quiet");
  REQUIRE(quiet.output.rfind("agrees: 1 rank on", 0) == 0);
  REQUIRE_THAT(quiet.output, ContainsSubstring("no collective ran"));
  REQUIRE(quiet.output.find('\n') == quiet.output.size() - 1);
}

TEST_CASE("what cannot be validated is refused") {
  const auto refused = [](const std::string& arguments, int code, const std::string& words) {
    // Whatever GPUs there are, none is seen.
    const tests::Run run =
        tests::shell("CUDA_VISIBLE_DEVICES= '" ZEROPLAN_BINARY "' validate " + arguments);
    CAPTURE(arguments, run.errors);
    REQUIRE(run.exit_code == code);
    REQUIRE(run.output.empty());
    REQUIRE(run.errors.rfind("zeroplan: error: ", 0) == 0);
    REQUIRE_THAT(run.errors, ContainsSubstring(words));
  };
  refused("mixtral-8x7b --gpus 8xH100-80GB --runtime megatron", 2, "no experts");
  refused(plan + "--backend hots", 2, "nearest is host");
  refused(plan + "--backend nccl", 3, "on the host alone");
  refused(plan + "--ranks 0", 2, "--ranks");
  refused(plan + "--spawn 0", 2, "--spawn");
  refused(plan + "--spawn 2 --ranks 4", 2, "--spawn starts 2");
  refused(plan + "--spawn 2 --backend loopback", 2, "host or nccl");
  refused(plan + "--spawn 2 --as-rank stage=0", 2, "--as-rank is one rank");
  refused(plan + "--steps none", 2, "--steps");
  refused(plan + "--timeout 0", 2, "--timeout");
  refused(plan + "--max-memory 33", 2, "--max-memory");
  refused(plan + "--recompute none --set partition_activations=true", 2, "recompute full");
  refused(plan + "--set partition_activation=true", 2, "nearest is partition_activations");
  refused(plan + "--as-rank stage=2", 2, "--as-rank");
  refused(plan + "--as-rank 1", 2, "stage=S");
  refused("nothing.json --gpus 8xH100-80GB", 2, "nothing.json");
}
