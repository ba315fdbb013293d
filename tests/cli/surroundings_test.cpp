// An answer depends on the question alone.
#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/source_dir.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;

TEST_CASE("an answer is the same in any locale, folder and width", "[release]") {
  const TemporaryFolder folder;
  const std::string here = folder.path().string();
  // A locale that writes 1,5 for 1.5, made here: machines for tests have none.
  const bool made =
      tests::shell("localedef -i de_DE -f UTF-8 " + here + "/de_DE.UTF-8").exit_code < 2;
  if (!made) WARN("no localedef: the locale falls back to C");
  for (const std::string question :
       {"fit llama3-8b --gpus 8xH100-80GB --tp 2",
        "fit mixtral-8x7b --gpus 16xA100-80GB --runtime fsdp2 --tp 1 --pp 1 --zero 3",
        "sweep gpt2-xl --gpus 8xA100-40GB --tp 1 --pp 1 --csv",
        "explain llama3-8b --gpus 8xH100-80GB --tp 2 --pp 2 --json",
        "export llama3-8b --gpus 8xH100-80GB --tp 2 --pp 2"}) {
    const tests::Run plain = tests::zeroplan(question);
    for (const std::string& surroundings :
         {"LOCPATH=" + here + " LC_ALL=de_DE.UTF-8",
          std::string("LC_ALL=tr_TR.UTF-8 TZ=Asia/Tokyo"), std::string("COLUMNS=20 LINES=5"),
          std::string("-i"), std::string("-C / OMP_NUM_THREADS=1")}) {
      CAPTURE(question, surroundings);
      const tests::Run run = tests::shell("env " + surroundings + " " + source_dir() +
                                          "/" ZEROPLAN_BINARY " " + question);
      REQUIRE(run.exit_code == plain.exit_code);
      REQUIRE(run.output == plain.output);
      REQUIRE(run.errors == plain.errors);
    }
  }
}
