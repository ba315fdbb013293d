// script/gpu with stand-ins for the driver and all programs: one part that fails stops no other,
// and what each printed is kept.
#include <chrono>
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/source_dir.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;

namespace {

void program(const TemporaryFolder& folder, const std::string& name, const std::string& body) {
  std::filesystem::permissions(folder.write(name, "#!/bin/sh\n" + body + "\n"),
                               std::filesystem::perms::owner_all);
}

tests::Run run_script(const TemporaryFolder& folder, const std::string& variables = "") {
  const std::string root = folder.path().string();
  return tests::shell(variables + "PATH='" + root + "/bin':$PATH PYTHON=false '" + root +
                      "/script/gpu' '" + root + "/out'");
}

}  // namespace

TEST_CASE("script/gpu goes on after a part that fails, and keeps what it printed") {
  const TemporaryFolder folder;
  program(folder, "script/build", "echo 'no network' >&2; exit 7");
  std::filesystem::copy(source_dir() + "/script/gpu", folder.path() / "script/gpu");
  program(folder, "bin/nvidia-smi", "exit 0");
  program(
      folder, "build/cuda/tests/gpu_tests",
      "case $1 in --list*) printf 'one\\ntwo, three\\n';; *) echo \"$1\"; [ \"$1\" = one ];; esac");
  program(folder, "build/cuda/zeroplan-gpu", "exit 0");
  program(
      folder, "build/cuda/zeroplan",
      "case \"$1 $2\" in\n"
      "'probe --devices') for i in 1 2; do\n"
      "  printf '{ \"name\": \"NVIDIA H200\",\\n \"compute_capability\": 90 }\\n'; done; exit 0;;\n"
      "'probe --output') echo 'NCCL hung' >&2; exit 3;; esac\n"
      "echo \"$@\"; [ \"$1\" != validate ]");
  const tests::Run run = run_script(folder);
  CAPTURE(run.errors);
  REQUIRE(run.exit_code == 1);
  const std::filesystem::path out = folder.path() / "out";
  const std::string summary = contents(out / "summary.txt");
  for (const char* part :
       {"build: exit 7: no network", "devices: ok", "tests: exit 1", ": 1 of 2 tests failed",
        "probe: exit 3", ": NCCL hung", "harness: not run: no PyTorch", "validate-zero-0: exit 1",
        "validate-zero-3: exit 1", "validate-settings: exit 1", "validate-as-rank-3: exit 1",
        "validate-nccl: exit 1"}) {
    REQUIRE_THAT(summary, ContainsSubstring(part));
  }
  // What is worth most comes first.
  REQUIRE(summary.find("validate-zero-3") < summary.find("probe"));
  REQUIRE(summary.find("probe") < summary.find("tests"));
  REQUIRE(contents(out / "tests.out") == "== one\none\n== two, three\ntwo\\, three\n");
  REQUIRE(contents(out / "probe.err") == "NCCL hung\n");
  REQUIRE_THAT(contents(out / "validate-nccl.out"), ContainsSubstring("--gpus 2xH200"));
}

TEST_CASE("script/gpu ends within its time") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "script");
  std::filesystem::copy(source_dir() + "/script/gpu", folder.path() / "script/gpu");
  program(folder, "bin/nvidia-smi", "exit 0");
  program(folder, "bin/zeroplan-gpu", "exit 0");
  program(folder, "bin/zeroplan", "[ \"$1\" = --version ] || exec sleep 600");
  const auto begin = std::chrono::steady_clock::now();
  // Whole seconds are counted: of three at least one is left, wherever in the first it begins.
  const tests::Run run = run_script(folder, "SCRIPT_GPU_SECONDS=3 ");
  REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(120));
  REQUIRE(run.exit_code == 1);
  REQUIRE_THAT(run.errors, ContainsSubstring("devices: ended after "));
  REQUIRE_THAT(run.errors, ContainsSubstring(" s, its time"));
  REQUIRE_THAT(run.errors, ContainsSubstring("validate-zero-3: not run: the 3 seconds are over"));
}

TEST_CASE("script/gpu without a GPU says so") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "script");
  std::filesystem::copy(source_dir() + "/script/gpu", folder.path() / "script/gpu");
  program(folder, "bin/nvidia-smi", "echo 'no devices were found'; exit 6");
  const tests::Run run = run_script(folder);
  REQUIRE(run.exit_code == 3);
  REQUIRE_THAT(run.errors,
               ContainsSubstring("devices: no device: nvidia-smi says: no devices were found\n"));
  REQUIRE_THAT(run.errors, ContainsSubstring("validate-zero-2: no device"));
}
