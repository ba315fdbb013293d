#pragma once
// What a configuration means, for tests.

#include <string>
#include <string_view>
#include <vector>

#include "presets/configuration.hpp"

namespace zeroplan::tests {

using Options = std::vector<TypedOption>;

inline ImportedConfiguration import(std::string_view text) {
  return import_configuration(text, "the file");
}

/// The value of a flag; of --set, of its key.
inline std::string value(const ImportedConfiguration& imported, std::string_view flag) {
  for (const TypedOption& option : imported.options) {
    if (option.flag == flag) return option.value;
    if (option.flag == "--set" && option.value.starts_with(std::string(flag) + "=")) {
      return option.value.substr(flag.size() + 1);
    }
  }
  return "";
}

}  // namespace zeroplan::tests
