// Which model does a person mean? Front door: load_model.
#include "presets/catalog.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "presets/hf_config.hpp"
#include "presets/hf_import.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/python_numbers.hpp"
#include "presets/text_file.hpp"

namespace zeroplan {
namespace {

namespace fs = std::filesystem;

CatalogModel read_catalog_model(const EmbeddedPreset& preset) {
  const std::string where = fmt::format("models/{}.json", preset.name);
  const nlohmann::json document = parse_json(preset.json, where);
  const JsonObject object(document, where);
  object.allow_only({"name", "huggingface", "aliases", "published_parameters", "published_scope",
                     "nominal", "note", "source", "verified", "config"});
  CatalogModel model;
  model.name = object.string("name");
  model.huggingface = object.find_string("huggingface").value_or("");
  model.aliases = object.strings("aliases");
  model.published_parameters =
      object.find_integer("published_parameters", {1, std::int64_t{1} << 50});
  model.published_scope = object.find_string("published_scope").value_or("");
  model.nominal = object.find_string("nominal").value_or("");
  model.note = object.find_string("note").value_or("");
  model.source = object.string("source");
  model.verified = object.boolean("verified");
  model.spec = import_hf_config(object.object("config"), model.assumptions);
  model.spec.name = model.name;
  model.json = std::string(preset.json);
  return model;
}

bool ends_with_json(std::string_view text) {
  return lower_case(text).ends_with(".json");
}

/// What to call the model of a file: config.json is named after its folder.
std::string name_of_file(const fs::path& path) {
  const bool generic = path.filename() == "config.json";
  const fs::path folder = fs::absolute(path).parent_path().filename();
  return printable((generic && !folder.empty() ? folder : path.stem()).string());
}

ModelSpec read_model_file(fs::path path,
                          std::vector<std::string>& assumptions,
                          std::string* config,
                          std::string_view as) {
  std::error_code error;
  if (fs::is_directory(path, error)) path /= "config.json";
  const std::string text = read_text_file(path.string());
  ModelSpec model = read_hf_config(text, in_quotes(path.string()), &assumptions, as);
  model.name = name_of_file(path);
  if (config != nullptr) *config = without_infinities(text);
  return model;
}

/// Refuses what is neither a catalog name nor a file, and says both: either may be misspelled.
[[noreturn]] void fail_unknown(std::string_view argument) {
  try {
    get_preset("models", argument);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}; nor is there such a file", error.what()));
  }
  throw InputError("unreachable: the name was just found missing");
}

}  // namespace

CatalogModel find_model(std::string_view name) {
  return read_catalog_model(get_preset("models", name));
}

ModelSpec load_model(std::string_view model_argument,
                     std::vector<std::string>& assumptions,
                     std::string* config,
                     std::string_view as) {
  if (model_argument == "-") {
    std::string text = read_standard_input();
    ModelSpec model = read_hf_config(text, "standard input", &assumptions, as);
    model.name = "standard-input";
    if (config != nullptr) *config = without_infinities(text);
    return model;
  }
  if (const EmbeddedPreset* preset = find_preset("models", model_argument)) {
    if (!as.empty()) {
      throw InputError(fmt::format("--as {}: {} of the catalog is what it is; --as reads a file",
                                   in_quotes(as), preset->name));
    }
    CatalogModel model = read_catalog_model(*preset);
    assumptions.insert(assumptions.end(), model.assumptions.begin(), model.assumptions.end());
    return model.spec;
  }
  const fs::path path(model_argument);
  std::error_code error;
  // read_model_file says so of a file that does not exist.
  if (fs::exists(path, error) || ends_with_json(model_argument)) {
    return read_model_file(path, assumptions, config, as);
  }
  fail_unknown(model_argument);
}

}  // namespace zeroplan
