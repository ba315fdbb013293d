#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/answer.hpp"
#include "tests/cli/run.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

TEST_CASE("a story's memory is the timeline's, and its calls are the answer's") {
  const std::string question =
      " llama3-8b --gpus 8xH100-80GB --pp 1 --micro-batch 1 --seq 2048 --global-batch 8 ";
  for (const std::string runtime :
       {"megatron --tp 2 --zero 1", "fsdp2 --tp 2 --zero 3", "ddp", "deepspeed --tp 2 --zero 2",
        "zeroplan --zero 3", "zero-paper --zero 3"}) {
    CAPTURE(runtime);
    const std::string asked = question + "--runtime " + runtime;
    const Json story = tests::answer("story" + asked);
    const Json timeline = tests::answer("timeline" + asked);
    REQUIRE(story.at("micro_batches").at("told") == story.at("micro_batches").at("all"));

    std::int64_t highest = 0;
    std::map<std::string, std::int64_t> sent;  // by group and collective
    for (const Json& phase : story.at("phases")) {
      for (const Json& block : phase.at("blocks")) {
        highest = std::max<std::int64_t>(highest, block.at("highest_bytes"));
        for (const Json& call : block.at("calls")) {
          sent[call.at("group").get<std::string>() + " " +
               call.at("collective").get<std::string>()] +=
              block.at("blocks").get<std::int64_t>() *
              call.at("sent_bytes_per_gpu").get<std::int64_t>();
        }
      }
    }
    CHECK(highest == timeline.at("peak").at("allocated_bytes"));
    std::map<std::string, std::int64_t> answered;
    const Json answer = tests::answer("fit" + asked);
    for (const Json& load : answer.at("communication")) {
      answered[load.at("group").get<std::string>() + " " +
               load.at("collective").get<std::string>()] +=
          load.at("sent_bytes_per_gpu").get<std::int64_t>();
    }
    CHECK(sent == answered);
  }
}

TEST_CASE("a story in words names who exchanges, over what, and why") {
  const tests::Run run = tests::zeroplan(
      "story llama3-8b --gpus 4xH100-80GB --runtime zeroplan --zero 3 --tp 1 --pp 1 "
      "--micro-batch 1 --seq 2048 --global-batch 8");
  REQUIRE(run.exit_code == 0);
  REQUIRE(run.errors.empty());
  for (const std::string words : {"dp of 4           ranks 0 to 3, over nvlink",
                                  "layer 0 to layer 31, each:", "f1: forward, as f0;",
                                  "all-gather of 416.02 MiB in dp: sends 312.01 MiB",
                                  "Where one owner broadcasts a whole block"}) {
    REQUIRE_THAT(run.output, ContainsSubstring(words));
  }
  const tests::Run timeline = tests::zeroplan(
      "timeline --story llama3-8b --gpus 4xH100-80GB --runtime zeroplan --zero 3 --tp 1 --pp 1 "
      "--micro-batch 1 --seq 2048 --global-batch 8");
  REQUIRE(timeline.output == run.output);
}

TEST_CASE("checkpoints that nothing divides are said to be whole") {
  const std::string question =
      "llama3-8b --gpus 8xH100-80GB --runtime deepspeed --zero 2 --pp 1 "
      "--set activation_checkpointing.partition_activations=true ";
  for (const std::string command : {"fit ", "story "}) {
    const auto says = [&](const std::string& more, const std::string& words) {
      const tests::Run run = tests::zeroplan(command + question + more);
      CAPTURE(command, more, run.output, run.errors);
      return run.output.find(words) != std::string::npos;
    };
    CHECK(says("--tp 1 --recompute full", "tp is 1"));
    CHECK(says("--tp 2 --recompute none", "nothing is"));
    CHECK_FALSE(says("--tp 2 --recompute full", "changes nothing"));
  }
}

TEST_CASE("what has no step has no story") {
  tests::require_refused("story 7.5B --gpus 64xH100 --runtime zero-paper", "no layers");
}
