#include "presets/configuration/shell_script.hpp"

#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

std::string arguments(std::string_view text) {
  const auto command = launch_command(text);
  return command ? command->arguments : "";
}

}  // namespace

TEST_CASE("a script's command is found with its variables put in") {
  CHECK(arguments("torchrun train.py --tp 2 --bf16\n") == "--tp \"2\"\n--bf16\n");
  CHECK(arguments("A=3\npython train.py --n $A --m ${A}x --k ${B:-7}") ==
        "--n \"3\"\n--m \"3x\"\n--k \"7\"\n");
  CHECK(arguments("ARGS=(--a 1 # one\n  --b 2\n)\ntrain.py \\\n  ${ARGS[@]} \\\n  --c") ==
        "--a \"1\"\n--b \"2\"\n--c\n");
  // In quotes, too: as many words as it has, each with quotes of its own.
  CHECK(arguments("ARGS=(--a 1 --b \"([1]*3)*2\")\ntrain.py \"${ARGS[@]}\" --c") ==
        "--a \"1\"\n--b \"([1]*3)*2\"\n--c\n");
  CHECK(arguments("A=(x)\ntrain.py --a \"${A[@]}\" --b \"${B[@]}\"") ==
        "--a \"x\"\n--b \"${B[@]}\"\n");
  CHECK(arguments("ARGS=\"--a 1\n --b\"\nARGS+=\" --c\"\ntrain.py $ARGS") ==
        "--a \"1\"\n--b\n--c\n");
  CHECK(arguments("train.py --path '/a b/$X'") == "--path \"/a b/$X\"\n");
  CHECK(arguments("X=1 train.py --x $X") == "--x \"$X\"\n");  // which the shell expands before
}

TEST_CASE("of several commands the one that trains is meant") {
  const std::string text =
      "python prepare.py --a 1\npython pretrain_gpt.py --b 2\npython train.py --c\n";
  const auto command = launch_command(text);
  REQUIRE(command);
  CHECK(command->script == "pretrain_gpt.py");
  CHECK(command->arguments == "--b \"2\"\n");
}

TEST_CASE("torchrun's numbers are the ranks, where it says both") {
  CHECK(launch_command("torchrun --nproc_per_node=8 --nnodes 4 train.py --a")->ranks == 32);
  CHECK(!launch_command("torchrun --nproc-per-node 8 train.py --a")->ranks);
  CHECK(!launch_command("torchrun --nproc-per-node 8 --nnodes $N train.py --a")->ranks);
}

TEST_CASE("a text without such a command has none") {
  for (const char* text :
       {"", "#!/bin/bash\necho hi\n", "train.py", "# train.py --a\n", "${", "A=("}) {
    CHECK(!launch_command(text));
  }
}
