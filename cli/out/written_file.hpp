#pragma once
// Files beside the answer.

#include <string>
#include <string_view>
#include <vector>

#include "cli/request/arguments.hpp"

namespace zeroplan {

/// Writes a file beside the answer: under another name in its folder first, so that whatever
/// happens the path holds what it held before, or all of `content`. Devices and pipes are written
/// to. Throws InputError where the path cannot be opened, and std::system_error where the disk does
/// not take it.
void write_file(const std::string& path, std::string_view content);

/// An option that names a file to write; no path where it was not given.
struct OutputFile {
  std::string flag;
  std::string path;
};

/// Throws InputError where a file to write is one of those that are read, or is named twice.
void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& read);

/// The files that a question names, as far as they are files: a name of the catalog is none.
std::vector<std::string> files_read(const LayoutArguments& arguments);

}  // namespace zeroplan
