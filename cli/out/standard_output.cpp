// Did the answer arrive? Front door: write_answer.
#include "cli/out/standard_output.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "presets/input_error.hpp"

namespace zeroplan {

void write_answer(std::string_view text) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error like others
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot write to standard output");
  }
}

void write_file(const std::string& path, std::string_view content) {
  const std::string failed = "cannot write " + path;
  // A new file appears whole. What is there already keeps its owner, links and permissions.
  const bool is_new = !std::filesystem::exists(std::filesystem::symlink_status(path));
  const std::string target = is_new ? path + ".part" + std::to_string(getpid()) : path;
  std::ofstream file(target, std::ios::binary);
  if (!file) throw InputError(failed);  // no such folder: what was typed is wrong
  file << content;
  file.close();
  std::error_code error;
  if (file && is_new) std::filesystem::rename(target, path, error);
  if (file && !error) return;
  const int cause = error ? error.value() : errno;
  if (is_new) std::filesystem::remove(target, error);
  throw std::system_error(cause, std::generic_category(), failed);  // a full disk
}

bool wants_color(const OutputOptions& output) {
  if (output.color != "auto") return output.color == "always";
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
}

}  // namespace zeroplan
