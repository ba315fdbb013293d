#pragma once
// Reading what a person points at: a file or standard input.

#include <optional>
#include <string>
#include <string_view>

namespace zeroplan {

/// The whole file. Throws InputError with the path when it is missing, a directory, unreadable,
/// empty, binary (holds a zero byte) or larger than any configuration (16 MiB).
std::string read_text_file(const std::string& path);

/// Everything on standard input, under the same rules.
std::string read_standard_input();

/// What it gave, for processes that this one starts; none where nobody asked for it.
const std::optional<std::string>& standard_input_read();

}  // namespace zeroplan
