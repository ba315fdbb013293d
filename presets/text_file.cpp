// What does the file say? Front door: read_text_file.
#include "presets/text_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <system_error>
#include <vector>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

std::optional<std::string> was_read;  // from standard input, which can be read once

constexpr std::size_t largest_text = std::size_t{16}
                                     << 20;  // published configurations stay below 1 MiB

std::string read_text(std::istream& in, const std::string& where) {
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    const std::string_view part(block.data(), static_cast<std::size_t>(in.gcount()));
    if (part.find('\0') != std::string_view::npos) {
      throw InputError(fmt::format("{}: binary data, a JSON text is expected", where));
    }
    text += part;
    if (text.size() > largest_text) {
      throw InputError(fmt::format("{}: larger than 16 MiB, a configuration is expected", where));
    }
  }
  if (in.bad()) throw InputError(fmt::format("{}: cannot be read", where));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw InputError(fmt::format("{}: empty, a JSON text is expected", where));
  }
  return text;
}

}  // namespace

std::string read_text_file(const std::string& path) {
  const std::string where = in_quotes(path);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw InputError(fmt::format("{}: no such file", where));
  if (std::filesystem::is_directory(status)) {
    throw InputError(fmt::format("{}: a directory, a file is expected", where));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(fmt::format("{}: cannot be opened for reading", where));
  return read_text(in, where);
}

std::string read_standard_input() {
  was_read = read_text(std::cin, "standard input");
  return *was_read;
}

const std::optional<std::string>& standard_input_read() {
  return was_read;
}

}  // namespace zeroplan
