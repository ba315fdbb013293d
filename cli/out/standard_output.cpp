// Did the answer arrive? Front doors: write_answer, write_text.
#include "cli/out/standard_output.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "cli/out/fold.hpp"
#include "cli/out/terminal.hpp"

namespace zeroplan {

void write_answer(std::string_view text) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error like others
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file that may not grow
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot write to standard output");
  }
}

void write_text(std::string_view text) {
  write_answer(folded(text, terminal_width()));
}

bool wants_color(const OutputOptions& output) {
  if (output.color != "auto") return output.color == "always";
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
}

}  // namespace zeroplan
