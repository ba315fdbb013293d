// zeroplan validate --with, with scripts that stand for an interpreter: they see the tracer's words
// and write a row where they say.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

namespace {

constexpr const char* plan =
    "validate llama3-8b --gpus 8xH100-80GB --tp 1 --pp 1 --zero 3 --seq 8192 --micro-batch 1 "
    "--global-batch 8 --recompute none --with torchtitan ";

// An interpreter that runs these lines of a shell; $script is the tracer, $out where the row goes.
std::string interpreter(const TemporaryFolder& folder, const std::string& lines) {
  const std::string path = (folder.path() / "python").string();
  std::ofstream(path) << "#!/bin/sh\nscript=$1\nfor out; do :; done\n" << lines << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

// A row as the tracer writes it, of so many bytes.
std::string row_of(std::int64_t bytes,
                   const char* setting = "recipe_date",
                   const char* value = "2026-02-20") {
  return Json{{"framework_version", "PyTorch 2.10, torchtitan 0.2.2"},
              {"settings", {{setting, value}}},
              {"notes", "3 steps."},
              {"measured",
               {{"bytes", bytes},
                {"phases", {{"backward", bytes}}},
                {"tensors", Json::array()},
                {"categories", {{"parameters", 1'000'000}, {"optimizer states", 2'000'000}}}}}}
      .dump();
}

// What a witness saw.
std::string witnessed(const TemporaryFolder& folder) {
  return contents(folder.path() / "seen");
}

// The same interpreter, which first notes the scripts and models that it was given, and the words.
std::string witness(const TemporaryFolder& folder, const std::string& lines) {
  const std::string seen = (folder.path() / "seen").string();
  return interpreter(
      folder, "here=$(dirname \"$script\")\nls \"$here\" \"$here/../../presets/models\" > " + seen +
                  "\necho \"$@\" >> " + seen + "\n" + lines);
}

std::string writes_row(const std::string& row) {
  return "cat > \"$out\" <<'END'\n" + row + "\nEND";
}

template <class... Setting>
std::string writes(std::int64_t bytes, Setting... setting) {
  return writes_row(row_of(bytes, setting...));
}

tests::Run traced(const std::string& python, const std::string& more = "--json") {
  return tests::zeroplan(plan + ("--python " + python + " " + more));
}

}  // namespace

TEST_CASE("validate --with lays what was traced beside what was predicted of that version") {
  const TemporaryFolder folder;
  const tests::Run first = traced(interpreter(folder, writes(1'000'000'000)));
  INFO(first.errors);
  REQUIRE(first.exit_code == 1);
  const Json differs = Json::parse(first.output);
  CHECK(differs.at("verdict") == "differs");
  CHECK(differs.at("settings") == Json::array({"recipe_date=2026-02-20"}));
  const std::int64_t predicted = differs.at("categories").back().at("predicted");
  // torchtitan 0.2.2's own code takes 66,663.7 MiB for this plan.
  CHECK(std::abs(static_cast<double>(predicted) / (1 << 20) - 66'663.7) < 10);

  const tests::Run second = traced(interpreter(folder, writes(predicted)));
  CHECK(second.exit_code == 0);
  CHECK(Json::parse(second.output).at("error") == 0.0);
  CHECK(Json::parse(second.output).at("verdict") == "agrees");
}

TEST_CASE("the tracer gets the plan's words, the scripts that it needs, and the model's preset") {
  const TemporaryFolder folder;
  traced(witness(folder, writes(1'000'000'000)));
  for (const char* word : {"trace_torchtitan.py", "titan_02.py", "instruments.py", "llama3-8b.json",
                           "llama3-8b --gpus 8 --layers 32 --seq 8192", "--recompute none"}) {
    CHECK_THAT(witnessed(folder), ContainsSubstring(word));
  }
}

TEST_CASE("validate --with deepspeed asks its engine for the plan's stage and buckets") {
  const TemporaryFolder folder;
  Json row = Json::parse(row_of(1'000'000'000));
  row["settings"] = {{"version", "0.19"}, {"reduce_bucket_size", "7"}};
  const std::string python = witness(folder, writes_row(row.dump()));
  const tests::Run run = tests::zeroplan(
      "validate qwen3-0.6b --gpus 8xH100-80GB --tp 1 --pp 1 --zero 2 --seq 64 --micro-batch 1 "
      "--global-batch 16 --recompute none --set reduce_bucket_size=5e6 --with deepspeed --json "
      "--python " +
      python);
  INFO(run.errors);
  REQUIRE(run.exit_code == 1);
  CHECK(Json::parse(run.output).at("settings") == Json::array({"version=0.19"}));
  for (const char* word : {"trace_deepspeed.py qwen3-0.6b --gpus 8", "--steps 2", "--zero 2",
                           "--precision bf16", "--set reduce_bucket_size=5000000"}) {
    CHECK_THAT(witnessed(folder), ContainsSubstring(word));
  }
}

TEST_CASE("validate --with nanotron says a rank of its pipeline as its configuration would") {
  const TemporaryFolder folder;
  const std::string python = witness(folder, writes(1'000'000'000, "version", "2024-12"));
  const tests::Run run = tests::zeroplan(
      "validate llama3-8b --gpus 16xH100-80GB --tp 2 --pp 2 --zero 1 --seq 2048 --micro-batch 1 "
      "--global-batch 16 --schedule gpipe --recompute full --as-rank stage=1 --with nanotron "
      "--set tp_recompute_allgather=false --json --python " +
      python);
  INFO(run.errors);
  CHECK(run.exit_code == 1);
  for (const char* file : {"cuda_on_host.py", "flash_attn_kernels.py", "nanotron_step.py"}) {
    CHECK_THAT(witnessed(folder), ContainsSubstring(file));
  }
  CHECK_THAT(witnessed(folder),
             ContainsSubstring("--tp 2 --pp 2 --stage 1 --zero 1 --engine afab --tp-mode "
                               "REDUCE_SCATTER --recompute full --keep-gathered --out"));
}

// The embedding (155.6 of 596.0 million elements) lies in the parts of the first three of eight
// ranks, of which the third owns layers too.
TEST_CASE("validate --with transformers traces replicas too") {
  const TemporaryFolder folder;
  const std::string python =
      witness(folder, writes(1'000'000'000, "gradient_as_bucket_view", "true"));
  const tests::Run run = tests::zeroplan(
      "validate llama3-8b --gpus 8xH100-80GB --runtime ddp --seq 2048 --micro-batch 1 "
      "--global-batch 8 --recompute none --attention flash_attention_2 --with transformers --json "
      "--set gradient_as_bucket_view=true --python " +
      python);
  INFO(run.errors);
  CHECK(run.exit_code == 1);
  for (const char* word : {"replicas.py",
                           "--zero 0 --recompute none --attention flash_attention_2 "
                           "--gradient-as-bucket-view"}) {
    CHECK_THAT(witnessed(folder), ContainsSubstring(word));
  }
}

TEST_CASE("validate --with deepspeed traces the rank that is predicted") {
  const TemporaryFolder folder;
  const std::string python = witness(folder, writes(1'000'000'000, "version", "0.19"));
  for (const auto& [zero, rank] : {std::pair{"0", "0"}, {"1", "2"}, {"2", "2"}, {"3", "0"}}) {
    const tests::Run run = tests::zeroplan(
        std::string(
            "validate qwen3-0.6b --gpus 8xH100-80GB --seq 64 --micro-batch 1 --global-batch 8 "
            "--recompute none --with deepspeed --zero ") +
        zero + " --python " + python);
    INFO(run.errors);
    CHECK_THAT(run.output, ContainsSubstring(std::string("rank ") + rank + " of stage 0"));
    CHECK_THAT(witnessed(folder), ContainsSubstring(std::string("--rank ") + rank + " "));
  }
}

TEST_CASE("validate --with megatron hands over what export writes") {
  const TemporaryFolder folder;
  Json row = Json::parse(row_of(1'000'000'000));
  row["settings"] = {{"num-layers", "32"}, {"bf16", true}};  // the runtime's own words
  row["decided"] = {{"transformer_engine", "2.17"}};
  row["measured"]["categories"]["gradients"] = 3'000'000;
  const std::string python = witness(folder, writes_row(row.dump()));
  const std::string question =
      " llama3-8b --gpus 8xH100-80GB --tp 2 --pp 2 --vpp 1 --zero 1 --seq 4096 --micro-batch 1 "
      "--global-batch 12 --recompute full ";
  const tests::Run run = tests::zeroplan(
      "validate" + question + "--with megatron --as-rank stage=1 --json --python " + python);
  INFO(run.errors);
  REQUIRE(run.exit_code == 1);
  const Json differs = Json::parse(run.output);
  CHECK(differs.at("settings") == Json::array({"transformer_engine=2.17"}));
  CHECK(differs.at("categories").at(2).at("name") == "gradients");
  CHECK(differs.at("categories").at(2).at("traced") == 3'000'000);
  std::string arguments =
      tests::zeroplan("export" + question + "--set tp_comm_overlap=false").output;
  std::replace(arguments.begin(), arguments.end(), '\n', ' ');
  CHECK_THAT(witnessed(folder), ContainsSubstring("trace_megatron.py llama3-8b --gpus 8 --stage 1 "
                                                  "--megatron=" +
                                                  arguments));
}

// torchtitan's pipeline has a buffer to receive into for each micro-batch.
TEST_CASE("of many micro-batches as few are traced as need as much as all") {
  const TemporaryFolder folder;
  const std::string python = witness(folder, writes(1'000'000'000));
  const std::string engine = " --python " + python +
                             " --json --gpus 8xH100-80GB --tp 1 --seq 2048 --micro-batch 1 --with ";
  const std::string titan = engine + "torchtitan --zero 3 --recompute full ";
  struct Case {
    std::string layout, traced, note;
  };
  for (const Case& c :
       {Case{titan + "--pp 1 --global-batch 16", "--steps 2 ", "3 steps"},
        Case{titan + "--pp 1 --global-batch 512", "--steps 3 ", "are 3 of a step's 64 "},
        Case{titan + "--pp 2 --vpp 1 --global-batch 64", "--steps 16 ", "3 steps"}}) {
    CAPTURE(c.layout);
    const tests::Run run = tests::zeroplan("validate llama3-8b" + c.layout);
    INFO(run.errors);
    REQUIRE(run.exit_code == 1);
    CHECK_THAT(Json::parse(run.output).at("notes"), ContainsSubstring(c.note));
    CHECK_THAT(witnessed(folder), ContainsSubstring(c.traced));
  }
  const std::string stages = witness(folder, writes(1'000'000'000, "attention-backend", "fused"));
  tests::zeroplan("validate llama3-8b --python " + stages +
                  " --gpus 8xH100-80GB --tp 1 --seq 2048 --micro-batch 1 --with megatron --zero 1 "
                  "--recompute full --pp 4 --vpp 2 --global-batch 64");
  CHECK_THAT(witnessed(folder),
             ContainsSubstring("--global-batch-size 24 "));  // 12 of 32 micro-batches
}

TEST_CASE("a trace that cannot be is one line and an exit code") {
  const TemporaryFolder folder;
  struct Case {
    std::string lines;
    int exit_code;
    std::string words;
  };
  for (const Case& c :
       {Case{"echo 'trace: error: python lacks torchtitan' >&2; exit 3", 3, "lacks torchtitan"},
        Case{"echo 'trace: error: torchtitan has no such model' >&2; exit 2", 2, "no such model"},
        Case{"echo 'RuntimeError: odd' >&2; exit 1", 3, "RuntimeError: odd"},
        Case{"exit 0", 3, "wrote no row"}, Case{"echo '{}' > \"$out\"", 3, "cannot be read"},
        Case{"kill -9 $$", 3, "signal 9"}}) {
    const tests::Run run = traced(interpreter(folder, c.lines));
    CAPTURE(c.lines, run.errors);
    CHECK(run.exit_code == c.exit_code);
    CHECK_THAT(run.errors, ContainsSubstring(c.words));
    CHECK(std::count(run.errors.begin(), run.errors.end(), '\n') == 1);
    CHECK(run.output.empty());
  }
  const tests::Run absent = traced("/nowhere/python");
  CHECK(absent.exit_code == 3);
  CHECK_THAT(absent.errors, ContainsSubstring("/nowhere/python: could not be started"));
}

TEST_CASE("a trace that hangs is killed, with what it started") {
  const TemporaryFolder folder;
  const tests::Run run = traced(interpreter(folder, "sleep 600 & sleep 600"), "--json --timeout 1");
  CHECK(run.exit_code == 3);
  CHECK_THAT(run.errors, ContainsSubstring("did not end within 1 s"));
  CHECK(run.seconds < 120);
}

TEST_CASE("what no tracer can be asked is refused before anything runs") {
  const std::string none = "--python /nowhere/python";
  const std::string start = "validate llama3-8b --gpus 8xH100-80GB ";
  for (const auto& [arguments, words] :
       {std::pair<std::string, std::string>{"--with torchtitam ", "nearest is torchtitan"},
        {"--with deepspeed --runtime fsdp2 ", "not deepspeed"},
        {"--with torchtitan --runtime megatron ", "is for megatron"},
        {"--with transformers --tp 2 --pp 1 --zero 3 ", "data parallelism"},
        {"--with torchtitan --tp 1 --pp 1 --zero 3 --optimizer sgd ", "sgd"},
        {"--with torchtitan --backend host ", "--backend"},
        {"--with deepspeed --tp 1 --pp 1 --zero 2 --attention flash_attention_2 ", "flash-attn"},
        {"--with megatron --runtime fsdp2 ", "not megatron"},
        {"--with megatron --tp 1 --pp 1 --zero 3 ", "Megatron-FSDP"},
        {"--with megatron --tp 1 --pp 1 --zero 1 --precision fp8 ", "fp8"},
        {"--with megatron --tp 2 --pp 1 --zero 1 --set tp_comm_overlap=true ", "user buffers"},
        {"--with megatron --tp 1 --pp 1 --zero 1 --optimizer sgd ", "sgd"}}) {
    const tests::Run run = tests::zeroplan(start + arguments + none);
    CAPTURE(arguments, run.errors);
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.errors, ContainsSubstring(words));
  }
}
