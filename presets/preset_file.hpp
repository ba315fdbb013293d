#pragma once
// The preset files in the binary, by kind (models, gpus, clusters, runtimes) and name.

#include <string>
#include <string_view>
#include <vector>

#include "presets/embedded.hpp"

namespace zeroplan {

/// models, gpus, clusters and runtimes, sorted.
const std::vector<std::string>& preset_kinds();

/// The file names without .json of one kind, sorted. Throws InputError when there is no such kind.
std::vector<std::string> preset_names(std::string_view kind);

/// The preset called `name`: file name, alias or Hugging Face id, whatever the case; null when none
/// is.
const EmbeddedPreset* find_preset(std::string_view kind, std::string_view name);

/// As find_preset. Throws InputError with the nearest name when none is.
const EmbeddedPreset& get_preset(std::string_view kind, std::string_view name);

/// The whole text of a preset file. Throws as get_preset.
std::string preset_json(std::string_view kind, std::string_view name);

}  // namespace zeroplan
