// zeroplan import: what does a configuration mean? Front door: run_import.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "presets/configuration.hpp"
#include "presets/nearest_name.hpp"
#include "presets/text_file.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

// As a shell takes it for one word.
std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:=/+";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Json document(const ImportedConfiguration& imported) {
  Json options = Json::array();
  for (const TypedOption& option : imported.options) {
    options.push_back({{"flag", option.flag}, {"value", option.value}});
  }
  Json out;
  out["schema"] = "zeroplan.import/1";
  out["format"] = imported.format;
  out["model"] = imported.model.empty() ? Json() : Json(imported.model);
  out["options"] = options;
  out["about_model"] = imported.about_model;
  out["not_understood"] = imported.not_understood;
  return out;
}

std::string one_line(const ImportedConfiguration& imported) {
  std::string text = imported.model.empty() ? "" : shell_word(imported.model);
  for (const TypedOption& option : imported.options) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", option.flag, shell_word(option.value));
  }
  return text + "\n";
}

}  // namespace

ExitCode run_import(const std::string& file, const OutputOptions& output) {
  const bool standard_input = file == "-";
  const ImportedConfiguration imported =
      import_configuration(standard_input ? read_standard_input() : read_text_file(file),
                           standard_input ? "standard input" : in_quotes(file));
  switch (output.form()) {
    case Output::json:
      fmt::print("{}\n", document(imported).dump(2));
      return ExitCode::yes;
    case Output::csv:
      fmt::print("flag,value\n");
      for (const TypedOption& option : imported.options) {
        fmt::print("{},{}\n", option.flag, option.value);
      }
      break;
    case Output::text:
      fmt::print("{}", one_line(imported));
      break;
  }
  if (output.quiet) return ExitCode::yes;
  fmt::print(stderr, "zeroplan: note: taken for {}\n", imported.format);
  if (!imported.about_model.empty()) {
    fmt::print(stderr, "zeroplan: note: MODEL says these: {}\n",
               fmt::join(imported.about_model, ", "));
  }
  for (const std::string& key : imported.not_understood) {
    fmt::print(stderr, "zeroplan: note: not understood: {}\n", key);
  }
  return ExitCode::yes;
}

}  // namespace zeroplan
