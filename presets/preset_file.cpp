// Which preset file does a name mean? Front door: find_preset.
#include "presets/preset_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {
namespace {

std::vector<const EmbeddedPreset*> presets_of(std::string_view kind) {
  std::vector<const EmbeddedPreset*> out;
  for (const EmbeddedPreset& preset : embedded_presets()) {
    if (preset.kind == kind) out.push_back(&preset);
  }
  return out;
}

std::vector<std::string> names_of(const EmbeddedPreset& preset) {
  const nlohmann::json document =
      parse_json(preset.json, fmt::format("{}/{}.json", preset.kind, preset.name));
  const JsonObject object(document, std::string(preset.name));
  std::vector<std::string> out = object.strings("aliases");
  out.emplace_back(preset.name);
  if (const auto id = object.find_string("huggingface")) out.push_back(*id);
  return out;
}

bool same_name(std::string_view a, std::string_view b) {
  return plain_name(a) == plain_name(b);
}

/// Whether the file's text holds `word` (a plain name), at any place: a filter far cheaper than
/// parsing.
bool mentions(std::string_view text, std::string_view word) {
  const auto equal = [](char a, char b) {
    if (a == '_' || a == ':' || a == ' ') return b == '-';
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), equal) != text.end();
}

bool answers_to(const EmbeddedPreset& preset, std::string_view name) {
  const std::vector<std::string> names = names_of(preset);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& other) { return same_name(other, name); });
}

}  // namespace

const std::vector<std::string>& preset_kinds() {
  static const std::vector<std::string> kinds{"clusters", "gpus", "models", "runtimes"};
  return kinds;
}

std::vector<std::string> preset_names(std::string_view kind) {
  std::vector<std::string> out;
  for (const EmbeddedPreset* preset : presets_of(kind)) out.emplace_back(preset->name);
  if (out.empty()) {
    throw InputError(fmt::format("no presets of kind {}, nearest is '{}'", in_quotes(kind),
                                 nearest(kind, preset_kinds())));
  }
  std::sort(out.begin(), out.end());
  return out;
}

const EmbeddedPreset* find_preset(std::string_view kind, std::string_view name) {
  const std::vector<const EmbeddedPreset*> all = presets_of(kind);
  for (const EmbeddedPreset* preset : all) {
    if (same_name(preset->name, name)) return preset;
  }
  const std::string quoted_name = "\"" + plain_name(name) + "\"";
  for (const EmbeddedPreset* preset : all) {
    if (mentions(preset->json, quoted_name) && answers_to(*preset, name)) return preset;
  }
  return nullptr;
}

const EmbeddedPreset& get_preset(std::string_view kind, std::string_view name) {
  if (const EmbeddedPreset* preset = find_preset(kind, name)) return *preset;
  std::vector<std::string> known = preset_names(kind);
  for (const EmbeddedPreset* preset : presets_of(kind)) {
    for (std::string& alias : names_of(*preset)) known.push_back(std::move(alias));
  }
  const std::string_view one = kind.substr(0, kind.size() - 1);  // "models": a model
  const std::string meant = near_name(name, known);
  throw InputError(meant.empty() ? fmt::format("no {} is called {}; zeroplan presets {} lists all",
                                               one, in_quotes(name), kind)
                                 : fmt::format("no {} is called {}, nearest is '{}'", one,
                                               in_quotes(name), meant));
}

std::string preset_json(std::string_view kind, std::string_view name) {
  return std::string(get_preset(kind, name).json);
}

}  // namespace zeroplan
