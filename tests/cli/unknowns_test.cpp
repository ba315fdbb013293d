// What a question leaves to be found: how far it goes, several values at once, what it costs.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/answer.hpp"
#include "tests/cli/fit.hpp"

using namespace zeroplan;
using tests::answer;
using tests::Json;
using tests::require_refused;

namespace {

const std::string layout =
    "llama3-8b --gpus 8xH100-80GB --tp 2 --pp 1 --zero 1 --recompute full --global-batch 64 ";

}  // namespace

TEST_CASE("the longest sequence fits, and one not much longer does not") {
  for (const std::string& question :
       {layout + "--micro-batch 1 --cp 1",
        std::string("llama3.2-1b --gpus 8xRTX-4090 --runtime fsdp2")}) {
    CAPTURE(question);
    const Json a = answer("fit " + question + " --seq max");
    REQUIRE(a.at("verdict") == "fits");
    const auto longest = a.at("layout").at("sequence_length").get<std::int64_t>();
    REQUIRE(longest % 1024 == 0);
    const std::string longer = " --seq " + std::to_string(longest + longest / 16 + 1024);
    const tests::Run run = tests::zeroplan("fit " + question + longer + " --json");
    REQUIRE((run.exit_code == 2 || Json::parse(run.output).at("verdict") != "fits"));
    REQUIRE_THAT(a.at("assumptions").dump(), ContainsSubstring("is the largest that fits"));
  }
}

TEST_CASE("the largest micro-batch fits, and the next does not") {
  const Json a = answer("fit " + layout + "--micro-batch max");
  REQUIRE(a.at("verdict") == "fits");
  const auto most = a.at("layout").at("micro_batch").get<std::int64_t>();
  REQUIRE(most > 1);
  REQUIRE(64 % most == 0);
  if (most < 16) {
    REQUIRE(answer("fit " + layout + "--micro-batch " + std::to_string(2 * most)).at("verdict") !=
            "fits");
  }
  require_refused("fit " + layout + "--micro-batch max --seq max", "one can be found at a time");
}

TEST_CASE("lists give a row for each combination, each what fit answers alone") {
  const std::string rest = " --tp 8 --pp 1 --recompute full --micro-batch 1 --zero 1";
  const Json table = answer("fit llama3-70b --gpus 64xH100-80GB,64xA100-80GB --seq 4k,32k" + rest);
  REQUIRE(table.at("schema") == "zeroplan.table/1");
  REQUIRE(table.at("rows").size() == 4);
  for (const Json& row : table.at("rows")) {
    std::string typed;
    for (const Json& option : row.at("options")) {
      typed +=
          " " + option.at("flag").get<std::string>() + " " + option.at("value").get<std::string>();
    }
    const Json alone = answer("fit llama3-70b" + typed + rest);
    for (const char* field : {"layout", "stages", "step", "verdict"}) {
      REQUIRE(row.at(field) == alone.at(field));
    }
  }
  const tests::Run text = tests::zeroplan("fit llama3-8b --gpus 8xH100 --tp 1,3,2");
  REQUIRE(text.exit_code == 0);
  REQUIRE(std::count(text.output.begin(), text.output.end(), '\n') == 4);
  REQUIRE_THAT(text.output, ContainsSubstring("refused"));
  const tests::Run csv = tests::zeroplan("fit llama3-8b --gpus 8xH100 --tp 1,2 --csv");
  REQUIRE(csv.output.find("tp,verdict,gpus,") == 0);
  REQUIRE(tests::zeroplan("fit llama3-70b --gpus 1xH100,2xH100 --recompute full").exit_code == 1);
  require_refused("fit llama3-8b --gpus 8xH100 --tp 3,5", "--tp");
  require_refused("fit llama3-8b --gpus 8xH100,,8xA100 --tp 1,2", "a value of the list is empty");
}

TEST_CASE("a number of tokens takes days, GPU hours and money") {
  const std::string question =
      "llama3-8b --gpus 64xH100-80GB --tp 1 --pp 1 --zero 1 --recompute none "
      "--micro-batch 1 --global-batch 1024 ";
  const Json a = answer("fit " + question + "--tokens 1T --price 2.5/h");
  const Json& all = a.at("training");
  const double steps = 1e12 / (1024.0 * 4096);
  const double seconds = steps * a.at("step").at("seconds").get<double>();
  REQUIRE(std::abs(all.at("steps").get<double>() / steps - 1) < 1e-9);
  REQUIRE(std::abs(all.at("days").get<double>() / (seconds / 86400) - 1) < 1e-9);
  REQUIRE(std::abs(all.at("gpu_hours").get<double>() / (64 * seconds / 3600) - 1) < 1e-9);
  REQUIRE(std::abs(all.at("money").get<double>() / (2.5 * 64 * seconds / 3600) - 1) < 1e-9);
  REQUIRE(!answer("fit " + question + "--tokens 300B").at("training").contains("money"));
  REQUIRE(answer("fit " + question + "--tokens 1e12 --price '$2.5/hour'").at("training") == all);
  const tests::Run text = tests::zeroplan("fit " + question + "--tokens 1T --price 2.5/h");
  REQUIRE_THAT(text.output, ContainsSubstring("  1T tokens: "));
  REQUIRE_THAT(text.output, ContainsSubstring(" at 2.5 a GPU hour"));
  const Json plan = answer("sweep " + question + "--tokens 1T").at("plans").at(0);
  const double days = steps * plan.at("step").at("seconds").get<double>() / 86400;
  REQUIRE(std::abs(plan.at("training").at("days").get<double>() / days - 1) < 1e-9);
  require_refused("fit " + question + "--price 2", "give --tokens");
  require_refused("fit " + question + "--tokens lots", "--tokens");
  require_refused("fit " + question + "--tokens 1T --price cheap", "--price");
}
