#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/answer.hpp"
#include "tests/cli/run.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

TEST_CASE("a story's memory is the timeline's, and its calls are the answer's", "[release]") {
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
    const auto add = [&](const Json& calls, std::int64_t times) {
      for (const Json& call : calls) {
        sent[call.at("group").get<std::string>() + " " +
             call.at("collective").get<std::string>()] +=
            times * call.at("sent_bytes_per_gpu").get<std::int64_t>();
      }
    };
    for (const Json& phase : story.at("phases")) {
      add(phase.at("calls"), 1);
      for (const Json& block : phase.at("blocks")) {
        highest = std::max<std::int64_t>(highest, block.at("highest_bytes"));
        add(block.at("calls"), block.at("blocks"));
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

// 16.06 GB of gradients in buckets of 500 million elements: 17 collectives, as they fill, in every
// backward pass.
TEST_CASE("DeepSpeed's buckets are told of the pass, not of the block in which it begins") {
  const std::string question =
      " llama3-8b --gpus 8xH100-80GB --runtime deepspeed --zero 2 --tp 1 --pp 1 --micro-batch 1 "
      "--seq 2048 --global-batch 16 --recompute full";
  const Json story = tests::answer("story" + question);
  const Json& backward = story.at("phases").at(1);
  REQUIRE(backward.at("name") == "b0");
  REQUIRE(backward.at("calls").size() == 1);
  CHECK(backward.at("calls").at(0).at("collective") == "reduce-scatter");
  CHECK(backward.at("calls").at(0).at("calls") == 17);
  for (const Json& block : backward.at("blocks")) CHECK(block.at("calls").empty());
  CHECK_THAT(tests::zeroplan("story" + question).output,
             ContainsSubstring("    all along: 17 x reduce-scatter of 900.97 MiB in dp"));
  // The first goes when a bucket is full, the last when the pass ends.
  const Json timeline = tests::answer("timeline" + question);
  std::vector<double> moments;
  for (const Json& event : timeline.at("events")) {
    if (event.at("kind") == "collective" && event.at("name") == "reduce-scatter") {
      moments.push_back(event.at("seconds"));
    }
  }
  const Json& pass = timeline.at("passes").at(1);
  const double start = pass.at("start_seconds"), end = pass.at("end_seconds");
  REQUIRE(moments.size() == 34);
  CHECK(moments[0] > start);
  CHECK(moments[8] > start + 0.3 * (end - start));
  CHECK(moments[16] <= end);
  CHECK(moments[17] > end);
}

TEST_CASE("only blocks of one kind are told as one") {
  const tests::Run run = tests::zeroplan(
      "story llama3-8b --gpus 8xH100-80GB --runtime deepspeed --zero 1 --tp 1 --pp 1 "
      "--micro-batch 1 --seq 2048 --global-batch 16 --recompute full");
  CHECK_THAT(run.output, ContainsSubstring("    layer 0 to layer 31, each:"));
  CHECK_THAT(run.output, !ContainsSubstring("embedding to"));
  CHECK_THAT(run.output, ContainsSubstring("before the step and after it      26.24 GiB\n"));
}

// Twenty chunks of one layer each, for 16 micro-batches: 640 passes.
TEST_CASE("chunks that do as one before are a line each, and messages as hidden as in the answer") {
  const std::string question =
      " llama3-70b --gpus 64xH100-80GB --tp 4 --pp 4 --vpp 20 --global-batch 64 --zero 1 "
      "--micro-batch 1 --recompute none";
  const tests::Run run = tests::zeroplan("story" + question);
  CHECK_THAT(run.output, ContainsSubstring("f0.2: forward, layer 8, as f0.1;"));
  CHECK_THAT(run.output, ContainsSubstring("f1.2 to f3.2: 3 times forward, as f1.1;"));
  CHECK(std::ranges::count(run.output, '\n') < 900);  // passes differ in what arrives beside them
  const Json fit = tests::answer("fit" + question);
  double exposed = 0, seconds = 0;
  for (const Json& load : fit.at("communication")) {
    if (load.at("group") != "pp") continue;
    exposed += load.at("exposed_seconds").get<double>();
    seconds += load.at("seconds").get<double>();
  }
  REQUIRE(exposed < 0.5 * seconds);
  CHECK_THAT(run.output, ContainsSubstring("message of 16.00 MiB in pp: sends 16.00 MiB, 385.3 us, "
                                           "beside other passes, 94.1 us waited for"));
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
