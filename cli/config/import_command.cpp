// zeroplan import: what does a configuration mean? Front door: run_import.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/request/plan_file.hpp"
#include "cli/request/shell_word.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

Json list(const std::vector<TypedOption>& options) {
  Json out = Json::array();
  for (const TypedOption& option : options) {
    out.push_back({{"flag", option.flag}, {"value", option.value}});
  }
  return out;
}

Json document(const ImportedConfiguration& imported) {
  Json out;
  out["schema"] = "zeroplan.import/1";
  out["format"] = imported.format;
  out["model"] = imported.model.empty() ? Json() : Json(imported.model);
  out["options"] = list(imported.options);
  out["left_open"] = list(imported.left_open);
  out["about_model"] = imported.about_model;
  out["notes"] = imported.notes;
  out["not_understood"] = imported.not_understood;
  out["immaterial"] = imported.immaterial;
  return out;
}

std::string rows(const ImportedConfiguration& imported) {
  std::string text = "flag,value\n";
  for (const TypedOption& option : imported.options) {
    text += fmt::format("{},{}\n", option.flag, option.value);
  }
  return text;
}

std::string typed(std::string text, const std::vector<TypedOption>& options) {
  for (const TypedOption& option : options) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", option.flag, shell_word(option.value));
  }
  return text;
}

}  // namespace

ExitCode run_import(const std::string& file, const OutputOptions& output) {
  const ImportedConfiguration imported = read_configuration(file);
  const std::string options =
      typed(imported.model.empty() ? "" : shell_word(imported.model), imported.options) + "\n";
  if (output.form() == Output::text) {
    write_answer(options);  // to be copied: on one line however long
  } else {
    write_in_form(
        output, [&] { return document(imported).dump(2) + "\n"; }, [&] { return rows(imported); },
        [&] { return options; });
  }
  if (output.quiet || output.form() == Output::json) return ExitCode::yes;
  fmt::print(stderr, "zeroplan: note: taken for {}\n", imported.format);
  if (!imported.about_model.empty()) {
    fmt::print(stderr, "zeroplan: note: MODEL says these: {}\n",
               fmt::join(imported.about_model, ", "));
  }
  if (!imported.left_open.empty()) {
    fmt::print(stderr, "zeroplan: note: no key says these, and without code they are: {}\n",
               typed("", imported.left_open));
  }
  for (const std::string& note : imported.notes) {
    fmt::print(stderr, "zeroplan: note: {}\n", note);
  }
  if (!imported.immaterial.empty()) {
    fmt::print(stderr, "zeroplan: note: change neither memory nor time: {}\n",
               fmt::join(imported.immaterial, ", "));
  }
  for (const std::string& key : imported.not_understood) {
    fmt::print(stderr, "zeroplan: note: not understood, and may change the answer: {}\n", key);
  }
  return ExitCode::yes;
}

}  // namespace zeroplan
