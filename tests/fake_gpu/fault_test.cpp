// The GPU program over libraries in which one call goes wrong: it says so in one line, ends with 3
// and in time, and leaves no process behind.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <vector>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/draws.hpp"
#include "tests/source_dir.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;

namespace {

// A model whose full shapes are computed at once.
constexpr const char* small_model =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
  "hidden_act": "silu", "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";

struct Job {
  std::string variables;
  std::string arguments;
  int ranks = 1;  // processes, with one more that starts them where they are several
  std::vector<std::string> faults{"error", "memory", "hang", "late"};
};

// Seconds that a call may take: few where one hangs on purpose, and where none does more than any
// busy machine needs.
constexpr int hurried = 1, patient = 60;

std::string line_of(const Job& job,
                    int timeout,
                    const std::string& more,
                    const std::string& before = "") {
  return fmt::format("{} {} {}'{}/" ZEROPLAN_FAKE_GPU "' {} --timeout {}", job.variables, more,
                     before, source_dir(), job.arguments, timeout);
}

struct Calls {
  long long all = 0, last_allocation = 0;
};

// Of a run in which nothing goes wrong, of the rank that makes fewest: who starts ranks makes two.
Calls calls_of(const Job& job) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "calls").string();
  const tests::Run run =
      tests::shell("( " + line_of(job, patient, "FAKE_GPU_CALLS='" + file + "'") + " )");
  INFO(run.errors << run.output);
  REQUIRE(run.exit_code == 0);
  std::ifstream list(file);
  std::vector<Calls> calls;
  for (Calls one; list >> one.all >> one.last_allocation;) calls.push_back(one);
  REQUIRE(calls.size() == static_cast<std::size_t>(job.ranks + (job.ranks > 1 ? 1 : 0)));
  std::sort(calls.begin(), calls.end(), [](Calls a, Calls b) { return a.all < b.all; });
  return calls[job.ranks > 1 ? 1 : 0];
}

// Processes that carry the mark in their environment.
int marked(const std::string& mark) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    found += contents(entry.path() / "environ").find(mark) != std::string::npos ? 1 : 0;
  }
  return found;
}

std::string errors_alone(const std::string& text) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("zeroplan: error: ") == 0) kept += line + '\n';
  }
  return kept;
}

// `count` seeded faults, many at a time: most of them only wait.
void check_faults(const Job& job, unsigned seed, int count) {
  const Calls calls = calls_of(job);
  const TemporaryFolder folder;
  const std::string mark = fmt::format("ZEROPLAN_TEST_MARK=faults-{}-{}", getpid(), seed);
  std::mt19937 draw(seed);
  const auto below = [&](long long most) { return static_cast<long long>(draw()) % most; };
  std::vector<std::string> faults;
  count = tests::draws(count);
  for (int i = 0; i < count; ++i) {
    const std::string& kind =
        job.faults[static_cast<std::size_t>(below(static_cast<long long>(job.faults.size())))];
    // Ranks that wait for each other do not always make the same number of calls.
    const long long last = (kind == "memory" ? calls.last_allocation : calls.all) * 9 / 10;
    std::string fault = fmt::format("FAKE_GPU_FAULT={}@{}", kind, 1 + below(last));
    if (job.ranks > 1) fault += fmt::format(" FAKE_GPU_RANK={}", below(job.ranks));
    faults.push_back(fault);
    folder.write(fmt::format("case-{}", i),
                 fmt::format("cd '{0}'\n"
                             "( {1} ) >out-{2} 2>err-{2} </dev/null\n"
                             "echo $? >code-{2}\n",
                             folder.path().string(),
                             line_of(job, hurried, mark + ' ' + fault, "timeout -k 1 120 "), i));
  }
  tests::shell(fmt::format("ls '{0}'/case-* | xargs -P 24 -n 1 sh", folder.path().string()));
  for (int i = 0; i < count; ++i) {
    const auto part = [&](const char* name) {
      return contents(folder.path() / fmt::format("{}-{}", name, i));
    };
    INFO(faults[static_cast<std::size_t>(i)] << " of " << calls.all << " calls: " << job.arguments);
    INFO(part("err"));
    CHECK(part("code") == "3\n");
    CHECK(part("out").empty());
    // The rank that fails says why, and who waits for it that it is lost.
    const std::string errors = errors_alone(part("err"));
    const auto lines = std::count(errors.begin(), errors.end(), '\n');
    CHECK((lines >= 1 && lines <= job.ranks));
    CHECK(errors == part("err"));
  }
  CHECK(marked(mark) == 0);
}

std::string validate(const TemporaryFolder& folder, const std::string& rest, int steps = 1) {
  return "validate '" + folder.write("model.json", small_model) + "' --quiet --seq 64 --steps " +
         std::to_string(steps) + " " + rest;
}

}  // namespace

TEST_CASE("ranks that share a GPU: every fault is one line, and ends it in time") {
  const TemporaryFolder folder;
  check_faults(
      {"", validate(folder, "--gpus 4xH100-80GB --zero 3 --tp 1 --pp 1 --backend loopback")}, 11,
      60);
}

TEST_CASE("one rank of a large plan: every fault is one line, and ends it in time") {
  const TemporaryFolder folder;
  check_faults(
      {"",
       validate(folder,
                "--gpus 8xH100-80GB --zero 1 --tp 2 --pp 2 --backend loopback --as-rank stage=1")},
      12, 40);
}

TEST_CASE("ranks with a GPU each, over NCCL: every fault is one line, and leaves no rank behind") {
  const TemporaryFolder folder;
  check_faults({"FAKE_GPU_DEVICES=2",
                validate(folder, "--gpus 2xH100-80GB --zero 3 --tp 1 --pp 1 --backend nccl"),
                2,
                {"error", "memory", "hang", "late", "lost", "killed"}},
               13, 60);
}

TEST_CASE("who starts the ranks does not wait for a driver that hangs") {
  const TemporaryFolder folder;
  const tests::Run run =
      tests::shell("FAKE_GPU_RANK=-1 FAKE_GPU_FAULT=hang@2 '" ZEROPLAN_FAKE_GPU "' " +
                   validate(folder, "--gpus 2xH100-80GB --share-gpus --timeout 1"));
  REQUIRE(run.exit_code == 3);
  REQUIRE(run.errors ==
          "zeroplan: error: no call of CUDA, cuBLASLt or NCCL has returned for 2 s; "
          "--timeout gives it longer\n");
}

TEST_CASE("probe: every fault is one line, and ends it in time") {
  check_faults({"FAKE_GPU_DEVICES=2", "probe --quiet"}, 14, 40);
}

TEST_CASE("without faults a GPU's equation closes and NCCL's ranks agree, sharing one too") {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& variables, const std::string& rest) {
    return tests::shell(variables + " '" ZEROPLAN_FAKE_GPU "' " + validate(folder, rest));
  };
  const std::string plan = "--gpus 2xH100-80GB --zero 3 --tp 1 --pp 1 ";
  REQUIRE(run("", plan + "--backend loopback").exit_code == 0);
  REQUIRE(run("FAKE_GPU_DEVICES=2", plan + "--backend nccl").exit_code == 0);

  const tests::Run refused = run("", plan + "--backend nccl --ranks 2");
  REQUIRE(refused.exit_code == 3);
  REQUIRE_THAT(refused.errors,
               ContainsSubstring("nccl needs a GPU for each rank, and here are 1; --share-gpus"));
  const tests::Run shared = run("", plan + "--share-gpus --json");
  INFO(shared.errors);
  REQUIRE(shared.exit_code == 0);
  REQUIRE_THAT(shared.output, ContainsSubstring("shared: 2 ranks on 1 GPU"));
  REQUIRE_THAT(shared.output, ContainsSubstring("reduce-scatter"));
  REQUIRE(run("", plan + "--share-gpus --backend loopback").exit_code == 2);
}

TEST_CASE("streams wait for what others do with the memory that they touch", "[release]") {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& variables, const std::string& rest) {
    return tests::shell("FAKE_GPU_DEVICES=4 FAKE_GPU_ORDER=1 " + variables +
                        " '" ZEROPLAN_FAKE_GPU "' " +
                        validate(folder, "--gpus 4xH100-80GB --backend nccl " + rest, 2));
  };
  const std::string both = "--set prefetch=true --set overlap_comm=true ";
  for (const std::string& rest :
       {"--zero 3 --tp 1 --pp 1 " + both, "--zero 3 --tp 2 --pp 1 " + both,
        "--zero 3 --tp 1 --pp 2 " + both, std::string("--zero 1 --tp 2 --pp 2 "),
        std::string("--zero 3 --tp 1 --pp 1 --set prefetch=true --set reduce_bucket_size=3000")}) {
    const tests::Run ordered = run("", rest);
    INFO(rest << ordered.errors);
    CHECK(ordered.exit_code == 0);
  }
  const tests::Run loose = run("FAKE_GPU_DROPS_WAITS=1", "--zero 3 --tp 1 --pp 1 " + both);
  CHECK(loose.exit_code != 0);
  CHECK_THAT(loose.errors, ContainsSubstring("does not wait for"));
}

TEST_CASE("seconds are laid beside what is predicted, as far as it is of the same") {
  const TemporaryFolder folder;
  const auto answer = [&](const std::string& variables, const std::string& rest) {
    const tests::Run run =
        tests::shell(variables + " '" ZEROPLAN_FAKE_GPU "' " + validate(folder, rest));
    INFO(run.errors);
    REQUIRE(run.exit_code == 0);
    return run.output;
  };
  const auto time = [&](const std::string& variables, const std::string& rest) {
    return nlohmann::json::parse(answer(variables, rest + " --json")).at("time");
  };
  const std::string plan =
      "--gpus 2xH100-80GB --zero 3 --tp 1 --pp 1 --set prefetch=true --set overlap_comm=true ";
  const auto nccl = time("FAKE_GPU_DEVICES=2", plan + "--backend nccl");
  CHECK(nccl.at("step").at("predicted_seconds") > 0);
  CHECK(nccl.at("mfu").at("predicted") > 0);
  CHECK(nccl.at("products").at("speed") > 0);
  CHECK(nccl.at("calls").at(0).at("predicted_exposed_seconds").is_number());
  const auto loopback = time("", plan + "--backend loopback");
  CHECK(loopback.at("products").at("predicted_seconds").is_null());
  CHECK(loopback.at("step").at("measured_seconds") > 0);
  const std::string rank =
      "--gpus 8xH100-80GB --zero 1 --tp 2 --pp 2 --backend loopback --as-rank stage=1 ";
  const auto alone = time("", rank);
  CHECK(alone.at("products").at("predicted_seconds") > 0);
  CHECK(alone.at("step").at("predicted_seconds").is_null());
}

TEST_CASE(
    "pairs of GPUs without a path are measured without a gate, at which the driver would wait for "
    "ever") {
  const tests::Run run = tests::shell("FAKE_GPU_DEVICES=2 FAKE_GPU_PEERS=0 '" ZEROPLAN_FAKE_GPU
                                      "' probe --quiet --timeout 20 --json");
  INFO(run.errors);
  REQUIRE(run.exit_code == 0);
}

TEST_CASE("probe says what the driver holds clocks back for, where it can be asked") {
  const tests::Run run = tests::shell("LD_LIBRARY_PATH='" ZEROPLAN_FAKE_NVML "' '" ZEROPLAN_FAKE_GPU
                                      "' probe --quiet");
  INFO(run.errors);
  REQUIRE(run.exit_code == 0);
  REQUIRE_THAT(run.output, ContainsSubstring("1410 of 1980 MHz, held back by the power cap\n") &&
                               ContainsSubstring("of what is expected of H100-80GB"));
}

TEST_CASE("script/gpu probes from a bundle whose programs find a GPU") {
  const TemporaryFolder folder;
  const std::filesystem::path root = folder.path();
  std::filesystem::create_directories(root / "bin");
  std::filesystem::create_directories(root / "script");
  std::filesystem::copy(source_dir() + "/script/gpu", root / "script/gpu");
  std::filesystem::copy(source_dir() + "/" ZEROPLAN_BINARY, root / "bin/zeroplan");
  std::filesystem::copy(source_dir() + "/" ZEROPLAN_FAKE_GPU, root / "bin/zeroplan-gpu");
  std::filesystem::permissions(folder.write("driver/nvidia-smi", "#!/bin/sh\n"),
                               std::filesystem::perms::owner_all);
  const tests::Run run =
      tests::shell("FAKE_GPU_DEVICES=2 SCRIPT_GPU_PARTS=probe PATH='" + root.string() +
                   "/driver':$PATH '" + root.string() + "/script/gpu' '" + root.string() + "/out'");
  INFO(run.errors);
  REQUIRE(run.exit_code == 0);
  REQUIRE_THAT(run.output, ContainsSubstring("devices: ok") && ContainsSubstring("probe: ok"));
  REQUIRE_THAT(contents(root / "out/cluster.json"), ContainsSubstring("H100"));
}

// By one thread, launches would take turns between GPUs and take longer than small collectives.
TEST_CASE("each GPU's collectives are launched by a thread of its own") {
  const TemporaryFolder folder;
  const std::string list = (folder.path() / "launches").string();
  const tests::Run run = tests::shell("FAKE_GPU_DEVICES=2 FAKE_GPU_LAUNCHES='" + list +
                                      "' '" ZEROPLAN_FAKE_GPU "' probe --quiet");
  REQUIRE(run.exit_code == 0);
  std::ifstream lines(list);
  std::map<std::string, std::string> last;  // communicator of each thread
  int launches = 0;
  int changes = 0;
  for (std::string communicator, thread; lines >> communicator >> thread; ++launches) {
    changes += last[thread] != communicator ? 1 : 0;
    last[thread] = communicator;
  }
  REQUIRE(launches > 1000);
  REQUIRE(changes < launches / 5);
}
