// Which numbers has JSON not? Front door: without_infinities.
#include "presets/python_numbers.hpp"

#include <algorithm>
#include <iterator>

namespace zeroplan {

std::string without_infinities(std::string_view text) {
  constexpr std::string_view names[] = {"-Infinity", "Infinity", "NaN"};
  std::string json;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    const auto name =
        quoted ? std::end(names) : std::ranges::find_if(names, [&](std::string_view number) {
          return text.substr(i).starts_with(number);
        });
    if (name != std::end(names)) {
      json += "null";
      i += name->size();
      continue;
    }
    const bool escapes = quoted && text[i] == '\\' && i + 1 < text.size();
    if (text[i] == '"') quoted = !quoted;
    json += text.substr(i, escapes ? 2 : 1);
    i += escapes ? 2 : 1;
  }
  return json;
}

}  // namespace zeroplan
