// How is it typed? Front door: shell_word.
#include "cli/request/shell_word.hpp"

namespace zeroplan {

std::string shell_word(std::string_view text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:=/+";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) {
    return std::string(text);
  }
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace zeroplan
