// How is it typed? Front door: shell_word.
#include "cli/request/shell_word.hpp"

#include <fmt/format.h>

#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

// What a terminal would obey, or not know, by its numbers.
std::string escaped(std::string_view text) {
  std::string out = "$'";
  for (const char c : text) {
    const bool sign = c == '\'' || c == '\\';
    out += c >= ' ' && c <= '~' && !sign ? std::string(1, c)
                                         : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return out + "'";
}

}  // namespace

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:=/+";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) {
    return std::string(text);
  }
  if (printable(text) != text) return escaped(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace zeroplan
