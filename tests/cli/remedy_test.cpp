// What zeroplan says would help does help.
#include <map>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"

using nlohmann::json;
using zeroplan::tests::Run;

namespace {

// The options of a question, by name.
using Options = std::map<std::string, std::string>;

std::string typed(const std::string& model, const Options& options) {
  std::string text = "fit " + model;
  for (const auto& [name, value] : options) text += " --" + name + " " + value;
  return text;
}

// "tp 8 (was 4) and zero 3 (was 1)" laid over the options.
Options changed(Options options, std::string change) {
  for (;;) {
    const std::size_t end = change.find(" (was ");
    const std::size_t space = change.find(' ');
    std::string value = change.substr(space + 1, end - space - 1);
    const std::string name = change.substr(0, space);
    if (name == "gpus") value += options.at("gpus").substr(options.at("gpus").find('x'));
    options[name] = value;
    const std::size_t next = change.find(") and ");
    if (next == std::string::npos) return options;
    change = change.substr(next + 6);
  }
}

}  // namespace

TEST_CASE("every printed remedy fits when it is asked about") {
  const std::pair<std::string, Options> questions[] = {
      {"llama3-70b",
       {{"gpus", "64xH100-80GB"},
        {"tp", "4"},
        {"pp", "2"},
        {"cp", "1"},
        {"zero", "1"},
        {"recompute", "none"},
        {"seq", "8192"},
        {"global-batch", "1024"},
        {"vpp", "1"}}},
      {"qwen2.5-72b",
       {{"gpus", "16xA100-80GB"},
        {"tp", "8"},
        {"pp", "1"},
        {"cp", "1"},
        {"zero", "1"},
        {"recompute", "full"},
        {"global-batch", "256"},
        {"micro-batch", "2"}}},
      {"llama3-8b",
       {{"gpus", "4xA100-40GB"},
        {"tp", "1"},
        {"zero", "1"},
        {"runtime", "deepspeed"},
        {"recompute", "none"},
        {"micro-batch", "8"},
        {"global-batch", "64"}}},
  };
  for (const auto& [model, options] : questions) {
    const Run run = zeroplan::tests::zeroplan(typed(model, options) + " --json");
    CAPTURE(model, run.errors);
    REQUIRE(run.exit_code == 1);
    const json remedies = json::parse(run.output)["nearest_fits"];
    REQUIRE(!remedies.empty());
    for (const json& remedy : remedies) {
      const std::string change = remedy["change"];
      const Run after =
          zeroplan::tests::zeroplan(typed(model, changed(options, change)) + " --json");
      CAPTURE(change, after.errors);
      REQUIRE(after.exit_code == 0);
      REQUIRE(json::parse(after.output)["verdict"] == "fits");
    }
  }
}
