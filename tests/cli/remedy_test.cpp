// What zeroplan says would help does help.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

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

// A question of which some fields are given, others open.
std::pair<std::string, Options> random_question(const std::string& runtime, std::mt19937& random) {
  const auto pick = [&](std::initializer_list<const char*> values) -> std::string {
    return *(values.begin() + random() % values.size());
  };
  Options options{{"runtime", runtime},
                  {"gpus", pick({"4xA100-40GB", "8xA100-40GB", "16xH100-80GB", "64xH100-80GB"})},
                  {"global-batch", pick({"64", "128", "192"})}};
  const auto maybe = [&](const char* name, std::initializer_list<const char*> values) {
    const std::string value = pick(values);
    if (random() % 2 == 0) options[name] = value;
  };
  maybe("micro-batch", {"1", "2", "8"});
  maybe("recompute", {"none", "full"});
  maybe("seq", {"2048", "8192"});
  if (runtime == "ddp") return {pick({"llama3.2-1b", "llama3-8b"}), options};
  maybe("tp", {"1", "2", "4"});
  maybe("zero", runtime == "fsdp2"      ? std::initializer_list<const char*>{"2", "3"}
                : runtime == "nanotron" ? std::initializer_list<const char*>{"0", "1"}
                                        : std::initializer_list<const char*>{"0", "1", "2", "3"});
  if (runtime != "fsdp2") maybe("pp", {"1", "2", "4"});
  if (runtime == "megatron") maybe("cp", {"1", "2"});
  const bool experts = (runtime == "megatron" || runtime == "fsdp2") && random() % 3 == 0;
  return {experts ? pick({"mixtral-8x7b", "deepseek-v2-lite"}) : pick({"llama3-8b", "llama3-70b"}),
          options};
}

json fits_after(const std::string& model, const Options& options, const std::string& change) {
  const Run after = zeroplan::tests::zeroplan(typed(model, changed(options, change)) + " --json");
  CAPTURE(typed(model, options), change, after.errors);
  REQUIRE(after.exit_code == 0);
  return json::parse(after.output);
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
      REQUIRE(fits_after(model, options, change)["verdict"] == "fits");
    }
  }
}

TEST_CASE("what is printed as a remedy of random layouts fits too, in every runtime", "[release]") {
  std::mt19937 random(17);
  for (const std::string runtime : {"megatron", "fsdp2", "deepspeed", "ddp", "nanotron"}) {
    const int wanted = 6;
    int without_room = 0;
    for (int tries = 0; tries < 200 && without_room < wanted; ++tries) {
      const auto [model, options] = random_question(runtime, random);
      const Run run = zeroplan::tests::zeroplan(typed(model, options) + " --json");
      if (run.exit_code != 1) continue;
      std::vector<json> remedies = json::parse(run.output)["nearest_fits"];
      std::shuffle(remedies.begin(), remedies.end(), random);
      constexpr std::size_t most = 5;
      remedies.resize(std::min(most, remedies.size()));
      without_room += !remedies.empty();
      for (const json& remedy : remedies) {
        CAPTURE(typed(model, options), remedy);
        REQUIRE(fits_after(model, options, remedy["change"])["verdict"] == "fits");
      }
    }
    CAPTURE(runtime);
    REQUIRE(without_room > 0);
  }
}

// What a sweep says to leave open.
TEST_CASE("without the options that a sweep names, it finds a plan", "[release]") {
  for (const std::string runtime : {"megatron", "fsdp2", "deepspeed", "nanotron"}) {
    std::mt19937 random(23);  // of its own: no runtime's answers decide what another is asked
    const int wanted = 2;
    int without_plan = 0;
    for (int i = 0; i < 200 && without_plan < wanted; ++i) {
      auto [model, options] = random_question(runtime, random);
      options.try_emplace("micro-batch", "1");  // small spaces
      const auto question = [&](const Options& given) {
        return "sweep" + typed(model, given).substr(3) + " --top 1 --json";
      };
      const Run run = zeroplan::tests::zeroplan(question(options));
      if (run.exit_code != 1) continue;
      const json answer = json::parse(run.output);
      if (!answer.contains("release")) continue;
      ++without_plan;
      for (const json& fields : answer["release"]) {
        Options open = options;
        for (const json& field : fields) open.erase(field.get<std::string>());
        CAPTURE(typed(model, options), fields);
        REQUIRE(zeroplan::tests::zeroplan(question(open)).exit_code == 0);
      }
    }
    CAPTURE(runtime);
    REQUIRE(without_plan > 0);
  }
}

TEST_CASE("checkpoints that tensor parallelism could divide are a change that helps") {
  const std::string question =
      "fit megatron-39.1b --gpus 64xV100-32GB --runtime deepspeed --zero 2 --tp 16 --pp 1 "
      "--micro-batch 16 --recompute full";
  const std::string setting = "activation_checkpointing.partition_activations=true";
  const Run run = zeroplan::tests::zeroplan(question);
  REQUIRE(run.exit_code == 1);
  REQUIRE_THAT(run.output, ContainsSubstring("set " + setting + " (was false)"));
  REQUIRE(zeroplan::tests::zeroplan(question + " --set " + setting).exit_code == 0);
}
