// A configuration never means something else than it says: batches, chunks, numbers, what is open.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/cpu_time.hpp"
#include "tests/presets/error_text.hpp"
#include "tests/presets/imported.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::import;
using tests::Options;
using tests::value;

TEST_CASE("micro-batches that are accumulated say the batch where the number of GPUs is open") {
  const auto d = [](const std::string& rest) {
    return import(R"({"zero_optimization": {"stage": 2})" + rest + "}");
  };
  const ImportedConfiguration both =
      d(R"(, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8)");
  CHECK(value(both, "--micro-batch") == "4");
  CHECK(value(both, "--gradient-accumulation") == "8");
  CHECK(value(both, "--global-batch").empty());
  CHECK(both.not_understood.empty());
  CHECK(value(d(R"(, "train_micro_batch_size_per_gpu": 4)"), "--gradient-accumulation") == "1");
  CHECK(value(d(R"(, "train_micro_batch_size_per_gpu": 4, "train_batch_size": 64)"),
              "--gradient-accumulation")
            .empty());
  // Without the micro-batch it takes dp.
  const ImportedConfiguration whole =
      d(R"(, "train_batch_size": 64, "gradient_accumulation_steps": 2)");
  CHECK(value(whole, "--global-batch") == "64");
  CHECK_THAT(whole.notes.front(), ContainsSubstring("64 / 2 / dp"));
  CHECK_THAT(d(R"(, "train_batch_size": 64)").notes.front(), ContainsSubstring("64 / 1 / dp"));
  CHECK_THAT(d("").notes.front(), ContainsSubstring("no batch"));
  CHECK_THAT(error_text([&] {
               d(R"(, "train_batch_size": 64, "train_micro_batch_size_per_gpu": 3,
                 "gradient_accumulation_steps": 2)");
             }),
             ContainsSubstring("no multiple"));
  CHECK(value(import(R"({"per_device_train_batch_size": 2, "gradient_accumulation_steps": 16})"),
              "--gradient-accumulation") == "16");
  // Megatron-LM's and torchtitan's own default is one micro-batch a replica.
  CHECK(value(import("--micro-batch-size 2 --bf16"), "--gradient-accumulation") == "1");
  const ImportedConfiguration t = import(
      "[training]\nlocal_batch_size = 8\n[parallelism]\npipeline_parallel_degree = 2\n"
      "pipeline_parallel_microbatch_size = 2\n");
  CHECK(value(t, "--micro-batch") == "2");
  CHECK(value(t, "--gradient-accumulation") == "4");
}

TEST_CASE("layers of a virtual pipeline stage say how many of them a rank has") {
  const std::string each =
      "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 5 ";
  const ImportedConfiguration m = import(each + "--num-layers 80");
  CHECK(value(m, "--vpp") == "8");
  CHECK(value(m, "--schedule") == "interleaved");
  CHECK(m.not_understood.empty());
  CHECK(value(import(each + "--num-layers 78 --account-for-embedding-in-pipeline-split "
                            "--account-for-loss-in-pipeline-split"),
              "--vpp") == "8");
  CHECK(value(import(each + "--num-layers 10"), "--schedule") == "1f1b");
  const auto refusal = [&](const std::string& rest) {
    return error_text([&] { import(each + rest); });
  };
  CHECK_THAT(refusal("--num-layers 84"), ContainsSubstring("does not divide 84 layers"));
  CHECK_THAT(refusal("--bf16"), ContainsSubstring("num-layers"));
  CHECK_THAT(refusal("--num-layers 80 --num-virtual-stages-per-pipeline-rank 2"),
             ContainsSubstring("refuses it beside"));
  CHECK_THAT(refusal("--num-layers 80 --decoder-first-pipeline-num-layers 4"),
             ContainsSubstring("refuses it beside"));
}

// As exported without it, Mixtral at ep 4 ran with gathered tokens, which took 126.2 MiB more.
TEST_CASE("Megatron-LM is told how tokens reach their experts") {
  const auto written = [](std::string_view model) {
    const Problem p = tests::problem(Runtime::megatron, model, {});
    return export_configuration(p, ConfigurationFormat::megatron).text;
  };
  CHECK_THAT(written("mixtral-8x7b"), ContainsSubstring("--moe-token-dispatcher-type alltoall"));
  CHECK_THAT(written("llama3-8b"), !ContainsSubstring("dispatcher"));

  const std::string dispatcher = "--num-experts 8 --moe-token-dispatcher-type ";
  CHECK(import(dispatcher + "alltoall").notes.empty());
  CHECK(import("--num-layers 8").notes.empty());
  CHECK(import(dispatcher + "flex").notes.empty());
  CHECK(import("--num-experts 8").notes ==
        std::vector<std::string>{"moe-token-dispatcher-type allgather, Megatron-LM's own, is taken "
                                 "for alltoall: it is not modelled"});
  const ImportedConfiguration unknown = import(dispatcher + "pigeon");
  CHECK(unknown.notes.empty());
  CHECK(unknown.not_understood == std::vector<std::string>{"moe-token-dispatcher-type 'pigeon'"});
}

TEST_CASE("a number that is none is refused, whatever the file is written in") {
  for (const std::string bad :
       {"inf", "nan", "0", "-1", "1.5", "1e3", "2x", "99999999999999999999"}) {
    for (const std::string& text :
         {"--global-batch-size " + bad, "--tensor-model-parallel-size " + bad,
          "--seq-length " + bad, "--num-virtual-stages-per-pipeline-rank " + bad,
          "--use-distributed-optimizer --num-distributed-optimizer-instances " + bad,
          "--output_dir out --per_device_train_batch_size " + bad,
          "[parallelism]\ntensor_parallel_degree = " + bad, "[training]\nlocal_batch_size = " + bad,
          "parallelism:\n  tp: " + bad, R"({"train_batch_size": ")" + bad + R"("})",
          R"({"sequence_parallel_size": ")" + bad + R"("})"}) {
      CAPTURE(text);
      REQUIRE_THAT(error_text([&] { import(text); }),
                   ContainsSubstring("the file: ") && ContainsSubstring("whole number from 1"));
    }
  }
}

TEST_CASE("a plan is read as strictly as a command line") {
  const auto plan = [](const std::string& layout, const std::string& rest = "") {
    return import(R"({"schema": "zeroplan.fit/1", "runtime": "megatron", "model": {"name": "gpt2"},
      "cluster": {"gpu": "H200", "gpus": 8}, "layout": {)" +
                  layout + "}" + rest + "}");
  };
  CHECK(plan(R"("tp": 2, "zero": 1, "sequence_parallel": true)").options ==
        Options{{"--gpus", "8xH200"},
                {"--runtime", "megatron"},
                {"--tp", "2"},
                {"--zero", "1"},
                {"--sequence-parallel", "on"}});
  const auto refusal = [&](const std::string& layout, const std::string& rest = "") {
    return error_text([&] { plan(layout, rest); });
  };
  CHECK_THAT(refusal(R"("tp": "\u001b[31m")"), ContainsSubstring("tp"));
  CHECK_THAT(refusal(R"("zero": 4)"), ContainsSubstring("must be one of 0, 1, 2, 3"));
  CHECK_THAT(refusal(R"("schedule": "\u001b[2J")"), ContainsSubstring("'?[2J'"));
  CHECK_THAT(refusal(R"("tp": 2)", R"(, "settings": {"tp_comm_overlap": "perhaps"})"),
             ContainsSubstring("tp_comm_overlap"));
}

TEST_CASE("nothing of a file reaches the terminal raw") {
  const ImportedConfiguration m = import("--bf16 --lr\x1b[2J \x1b[31m");
  REQUIRE(m.not_understood.size() == 1);
  CHECK(m.not_understood.front() == "lr?[2J '?[31m'");
}

TEST_CASE("DeepSpeed's JSON leaves open what it has no key for") {
  const ImportedConfiguration d = import(R"({"zero_optimization": {"stage": 1}})");
  CHECK(d.left_open == Options{{"--pp", "1"},
                               {"--vpp", "1"},
                               {"--ep", "1"},
                               {"--etp", "1"},
                               {"--schedule", "1f1b"},
                               {"--sequence-parallel", "off"},
                               {"--optimizer", "adam"}});
  for (const TypedOption& open : d.left_open) CHECK(value(d, open.flag).empty());
  CHECK(value(d, "--tp") == "1");  // these have keys, and defaults
  CHECK(value(d, "--cp") == "1");
  CHECK(value(import(R"({"optimizer": {"type": "AdamW"}})"), "--optimizer") == "adam");
}

TEST_CASE("torchtitan's shards are all ranks that are left, where it says no number") {
  const std::string replicas = "[parallelism]\ndata_parallel_replicate_degree = 2\n";
  CHECK(value(import(replicas), "--hsdp") == "dp/2");
  CHECK(value(import(replicas + "data_parallel_shard_degree = -1\n"), "--hsdp") == "dp/2");
  CHECK(value(import(replicas + "data_parallel_shard_degree = 4\n"), "--hsdp") == "4");
}

TEST_CASE("reading takes time by the size of a file, not by its square", "[release]") {
  const auto seconds = [](std::size_t keys) {
    std::string text = "--bf16\n";
    for (std::size_t i = 0; i < keys; ++i) text += "--key-" + std::to_string(i) + "\n";
    return tests::cpu_seconds([&] { CHECK(import(text).not_understood.size() == keys); });
  };
  // Compared pair by pair, 16 times as many take 256 times as long.
  CHECK(seconds(80'000) < 64 * std::max({seconds(5'000), seconds(5'000), seconds(5'000)}));
}
