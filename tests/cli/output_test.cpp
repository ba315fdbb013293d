// An answer arrives, or is said to be lost: exit 3 and one line.
#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using tests::Run;

namespace {

const std::string question = "llama3.2-1b --gpus 2xA100-40GB --tp 1 --recompute none ";

void require_lost(const std::string& arguments, const std::string& words) {
  const Run run = tests::zeroplan(arguments);
  CAPTURE(arguments, run.output, run.errors);
  REQUIRE(run.exit_code == 3);
  REQUIRE(run.output.empty());
  REQUIRE(run.errors.find("zeroplan: error: " + words) == 0);
  REQUIRE(run.errors.find('\n') == run.errors.size() - 1);
}

}  // namespace

TEST_CASE("an answer that a full disk does not take is said to be lost, by every command") {
  const TemporaryFolder folder;
  const std::string plan =
      folder.write("plan.json", tests::zeroplan("fit " + question + "--json").output);
  for (const std::string& command : std::initializer_list<std::string>{
           "fit " + question, "explain " + question, "timeline " + question, "export " + question,
           "sweep " + question + "--top 1",
           "validate llama3-8b --gpus 2xA100-80GB --tp 2 --backend host --steps 1",
           "compare " + plan + " " + plan, "import " + plan, "presets models",
           "presets models llama3-8b"}) {
    for (const char* form : {"", " --json", " --csv"}) {
      const bool has_rows = !command.starts_with("export") && !command.starts_with("timeline");
      if (!has_rows && form == std::string(" --csv")) continue;
      require_lost(command + form + " > /dev/full", "cannot write to standard output");
    }
  }
}

TEST_CASE("a reader that has gone is an answer lost") {
  const Run run = tests::shell("{ sleep 0.2; '" ZEROPLAN_BINARY "' fit " + question +
                               "; echo \"exit $?\" >&2; } | true");
  CAPTURE(run.errors);
  REQUIRE_THAT(run.errors, ContainsSubstring("exit 3"));
}

TEST_CASE("a file that a full disk does not take is said to be lost") {
  for (const std::string file : {"--chrome-trace", "--snapshot"}) {
    require_lost("timeline " + question + file + " /dev/full", "cannot write /dev/full");
  }
}
