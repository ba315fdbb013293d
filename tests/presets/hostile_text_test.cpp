// What readers did wrong once and the seeds of tests/fuzz do not say by name.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "presets/configuration.hpp"
#include "presets/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;

// Files are quoted in refusals: what a terminal obeys must not get there.
TEST_CASE("a refusal is printable whatever it quotes", "[hostile]") {
  CHECK(std::string(InputError("\x1b[31m'a\tb'\n\xff").what()) == "?[31m'a?b'??");
  try {
    import_configuration("accelerate launch --use_fsd\x1b[31mp train.py --bf16\n", "file");
    FAIL("was taken");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("--use-fsd?[31mp"));
  }
}

// It is compared with the program's own, and what differs is printed.
TEST_CASE("the versions of a plan are printable", "[hostile]") {
  const ImportedConfiguration plan = import_configuration(
      R"({"schema": "zeroplan.fit/1", "model": {"name": "llama3-8b"}, "runtime": "megatron",
          "cluster": {"gpus": 8, "gpu": "H100-80GB"}, "versions": {"a\u0007": "\u001b[31m"},
          "layout": {"dp": 2, "tp": 2, "pp": 2, "zero": 1, "sequence_parallel": true}})",
      "file");
  CHECK(plan.versions == std::map<std::string, std::string>{{"a?", "?[31m"}});
}

// A model is handed on as JSON, which knows no such bytes.
TEST_CASE("a configuration whose keys are no UTF-8 is read as any other, and they are printable",
          "[hostile]") {
  std::ifstream file(source_dir() + "/tests/presets/configuration/texts/nanotron_llama.yaml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t key = text.find("num_key_value_heads");
  REQUIRE(key != std::string::npos);
  text[key + 16] = '\xfa';
  const ImportedConfiguration meaning = import_configuration(text, "file");
  CHECK(!meaning.options.empty());
  CHECK(!meaning.model_config.empty());
  const auto is = [](std::string_view printed) {
    return printed == "model.model_config.num_key_value_he?ds";
  };
  CHECK(std::ranges::any_of(meaning.about_model, is));
}
