// What a person types: sizes, counts, whole command lines.
#include <CLI/CLI.hpp>
#include <cmath>

#include "cli/request/arguments.hpp"
#include "cli/request/quantity.hpp"
#include "cli/request/read_request.hpp"
#include "cli/request/shell_word.hpp"
#include "cli/request/typed_words.hpp"
#include "cli/request/usage_error.hpp"
#include "cli/request/words.hpp"
#include "presets/input_error.hpp"
#include "tests/fuzz/target.hpp"

namespace zeroplan::fuzz {
namespace {

// Each reads on where another refuses.
template <class Read>
void each(const Read& read) {
  try {
    read();
  } catch (const InputError& error) {
    require_printable(error.what());
  }
}

std::vector<std::string> words_of(std::string_view bytes) {
  std::vector<std::string> words(1);
  for (const char c : bytes) {
    if (c == ' ') {
      words.emplace_back();
    } else if (c != '\0') {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace

void look_at_quantities(std::string_view bytes) {
  each([&] { require(read_size("--size", bytes) >= Bytes{}, "a size is not negative"); });
  each([&] {
    const std::int64_t whole = read_whole("--whole", bytes, 1, 100);
    require(whole >= 1 && whole <= 100, "a number is in its range");
  });
  each([&] {
    const std::int64_t length = read_length("--length", bytes, 1, 1 << 20);
    require(length >= 1 && length <= 1 << 20, "a length is in its range");
  });
  each([&] {
    const double part = read_percent("--percent", bytes);
    require(part >= 0 && part <= 1, "a share is a part");
  });
  each([&] {
    require(read_size_or_share("--share", bytes, Bytes{1 << 30}) >= Bytes{}, "a share of a size");
  });
  each([&] {
    const auto tokens = parse_tokens(bytes);
    require(!tokens || std::isfinite(*tokens), "tokens are a number");
  });
  each([&] {
    const auto parameters = parse_parameter_count(bytes);
    require(!parameters || *parameters >= 0, "parameters are counted");
  });
  each([&] { read_gpu_text(bytes); });
  each([&] { usual_word("--recompute", bytes); });
}

std::vector<std::string> quantity_seeds() {
  return {"80GiB",       "1.5 TB",           "90%",  "8k",  "4M tokens", "15T", "300e9", "7.5B",
          "8xH100-80GB", "8 x H100, 4xA100", "0x10", "1e3", "-1",        "FULL"};
}

// Options as they are parsed and understood; names that may be files are left out.
void look_at_command_line(std::string_view bytes) {
  CLI::App app{"", "zeroplan"};
  FitArguments question;
  add_fit_options(*app.add_subcommand("fit", ""), question);
  std::vector<std::string> words = typed_words(words_of(bytes));
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) require_printable(usage_message(app, error));
    return;
  }
  if (!app.got_subcommand("fit")) return;
  for (const std::string& word : words_of(bytes)) {
    if (word.find_first_of("/.-") == 0 && word.find("--") != 0) return;
    if (word.find("config") != word.npos || word.find("cluster") != word.npos) return;
  }
  std::vector<std::string> notes;
  each([&] { read_request(question.layout, notes); });
  for (const std::string& note : notes) require_printable(note);
}

std::vector<std::string> command_line_seeds() {
  return {"fit llama3-8b --gpus 8xH100-80GB",
          "fit llama3-70b --gpus 64xH100-80GB --tp 4 --pp 4 --zero 1 --seq 8k --recompute full",
          "fit gpt2 --gpus 2xA100 --runtime fsdp2 --zero 3 --set recipe_date=2025-02-06 x=1",
          "fit 7B --gpus H100 --tokens 1T --price 2.5/h --micro-batch max --max-memory 90%",
          "fit deepseek-v3 --gpus 2048xH800 --ep 64 --schedule dualpipe --precision fp8 --json"};
}

}  // namespace zeroplan::fuzz
