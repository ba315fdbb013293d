#pragma once
// What an answer was made by, so that one of an older model can be told.

#include <string>
#include <string_view>

namespace zeroplan {

struct Versions {
  std::string_view program;
  std::string_view presets;    // digest of the catalog that is built in
  std::string_view constants;  // date of the last fit of the law of step time
  std::string_view corpus;     // digest of the errors recorded against measured runs
};

/// The versions of this program. Digests are the first twelve digits of SHA-256.
const Versions& versions();

/// The versions, a line each, the program's first.
std::string version_text();

}  // namespace zeroplan
