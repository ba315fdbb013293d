// An answer arrives, or is said to be lost: exit 3 and one line.
#include "tests/catch.hpp"
#include "tests/cli/answer.hpp"
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

TEST_CASE("help and version are answers too") {
  require_lost("--help > /dev/full", "cannot write to standard output");
  require_lost("--version > /dev/full", "cannot write to standard output");
}

TEST_CASE("a file is written whole, or stays what it was") {
  const TemporaryFolder folder;
  const std::string file = folder.write("trace.json", "precious");
  const std::string target = "timeline " + question + "--quiet --chrome-trace " + file;
  const auto kept = [&] { return tests::shell("cat " + file).output; };
  const auto others = [&] { return tests::shell("ls " + folder.path().string()).output; };
#ifndef ZEROPLAN_SANITIZED  // which writes files of its own
  // Of 8 blocks of 512 bytes or 1 KiB, whatever the shell counts in.
  const Run cut = tests::shell("(ulimit -f 8; '" ZEROPLAN_BINARY "' " + target + ")");
  CAPTURE(cut.errors);
  CHECK(cut.exit_code == 3);
  CHECK_THAT(cut.errors, ContainsSubstring("cannot write " + file + ": File too large"));
#endif
  CHECK(kept() == "precious");
  CHECK(others() == "trace.json\n");

  // With the rights it had, and where a link leads.
  tests::shell("chmod 640 " + file + "; ln -s trace.json " + folder.path().string() + "/link");
  REQUIRE(tests::zeroplan("timeline " + question + "--quiet --chrome-trace " +
                          folder.path().string() + "/link")
              .exit_code == 0);
  CHECK_THAT(kept(), ContainsSubstring("traceEvents"));
  CHECK(tests::shell("stat -c %a " + file).output == "640\n");
  CHECK(others() == "link\ntrace.json\n");
}

TEST_CASE("no file is written onto one that is read, nor two onto one") {
  const TemporaryFolder folder;
  const std::string plan =
      folder.write("plan.json", tests::zeroplan("fit " + question + "--json").output);
  const std::string before = tests::shell("cat " + plan).output;
  tests::shell("ln -s plan.json " + folder.path().string() + "/link.json");
  tests::require_refused("timeline " + plan + " --chrome-trace " + plan, "is read too");
  tests::require_refused(
      "timeline " + plan + " --snapshot " + folder.path().string() + "/link.json", "is read too");
  tests::require_refused("sweep " + plan + " --save " + plan, "is read too");
  const std::string one = folder.path().string() + "/one";
  tests::require_refused("timeline " + question + "--chrome-trace " + one + " --snapshot " + one,
                         "--chrome-trace writes the same file");
  CHECK(tests::shell("cat " + plan).output == before);
  CHECK(tests::zeroplan("timeline " + question + "--chrome-trace /dev/null --snapshot /dev/null")
            .exit_code == 0);
}

TEST_CASE("a name that is not UTF-8, or moves the cursor, is printed as what it is") {
  const TemporaryFolder folder;
  const std::string config =
      R"({"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4,
          "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 32000,
          "max_position_embeddings": 4096})";
  for (const std::string name : {"bad\xff.json", "esc\x1b[2J.json", "line\nline.json"}) {
    const std::string path = folder.write(name, config);
    for (const char* command : {"fit", "explain", "timeline", "sweep"}) {
      for (const char* form : {"", " --json"}) {
        const Run run =
            tests::zeroplan(std::string(command) + " '" + path + "' --gpus 8xH200" + form);
        CAPTURE(command, form, run.errors);
        REQUIRE(run.exit_code == 0);
        REQUIRE(run.output.find('\x1b') == std::string::npos);
        if (*form != '\0') REQUIRE(nlohmann::json::accept(run.output));
      }
    }
  }
  const Run imported =
      tests::zeroplan("import - --json <<'E'\n--tensor-model-parallel-size 2\n--foo \xff\x1b\nE\n");
  CAPTURE(imported.errors);
  REQUIRE(imported.exit_code == 0);
  REQUIRE(nlohmann::json::accept(imported.output));
}

TEST_CASE("more threads than cores are no noise") {
  const Run run = tests::zeroplan("sweep gpt2 --gpus 8xH200 --tp 1 --pp 1 --threads 64 --quiet");
  CHECK(run.exit_code == 0);
  CHECK(run.errors.empty());
}

#ifndef ZEROPLAN_SANITIZED  // which maps more
// From limits at which the loader gives up, over those at which what comes before main() finds no
// room, to those that are enough.
TEST_CASE(
    "however little memory there is, an answer is whole or one line says that there is none") {
  int without = 0, answered = 0;
  for (const std::string command :
       {"fit llama3-70b --gpus 64xH100-80GB --json", "sweep llama3-8b --gpus 32xH100-80GB --json",
        "export llama3-8b --gpus 16xMI300X --micro-batch 4", "explain llama3-8b --gpus 8xH200",
        "timeline deepseek-v3 --gpus 1024xH100-80GB --pp 8 --json", "presets models"}) {
    for (const int mib :
         {10, 11, 12, 13, 14, 15, 16, 18, 20, 23, 26, 30, 36, 44, 60, 90, 150, 300}) {
      const Run run = tests::shell("(ulimit -v " + std::to_string(1024 * mib) +
                                   "; exec '" ZEROPLAN_BINARY "' " + command + ")");
      CAPTURE(command, mib, run.errors);
      constexpr int loader_gave_up = 127;
      if (run.exit_code == loader_gave_up) continue;
      if (run.exit_code == 3) {
        ++without;
        CHECK(run.output.empty());
        CHECK(run.errors ==
              "zeroplan: error: no memory is left; does 'ulimit -v' or a container bound it?\n");
      } else {
        ++answered;
        CHECK(run.exit_code == 0);
        CHECK(!run.output.empty());
        CHECK(run.errors.find("error") == std::string::npos);
      }
    }
  }
  CHECK(without > 0);
  CHECK(answered > 0);
}

TEST_CASE("little address space is enough to plan") {
  const Run run = tests::shell("(ulimit -v 200000; timeout 60 '" ZEROPLAN_BINARY "' fit " +
                               question + "--quiet)");
  CAPTURE(run.errors);
  CHECK(run.exit_code == 0);
}
#endif
