// How wide is the terminal, and what can it show? Front doors: terminal_width, terminal_has_blocks,
// text_style.
#include "cli/out/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cli/out/standard_output.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t narrowest = 60, usual = 80;

std::size_t said_width() {
  const char* said = std::getenv("COLUMNS");
  std::size_t columns = 0;
  if (said != nullptr) std::from_chars(said, said + std::strlen(said), columns);
  return columns;
}

}  // namespace

std::size_t terminal_width() {
  if (isatty(STDOUT_FILENO) == 0) return 0;
  std::size_t columns = said_width();
  winsize size{};
  if (columns == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return std::max(columns == 0 ? usual : columns, narrowest);
}

bool terminal_has_blocks() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value;
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

TextStyle text_style(const OutputOptions& output) {
  return {wants_color(output), output.quiet, terminal_width(), terminal_has_blocks()};
}

}  // namespace zeroplan
