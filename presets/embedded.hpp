#pragma once
// The preset files as the build put them into the binary.

#include <span>
#include <string_view>

namespace zeroplan {

struct EmbeddedPreset {
  std::string_view kind;  // its folder: models, gpus, clusters, runtimes
  std::string_view name;  // its file name without .json
  std::string_view json;
};

/// Every preset, by kind and then by name.
std::span<const EmbeddedPreset> embedded_presets();

}  // namespace zeroplan
