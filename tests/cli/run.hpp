#pragma once
// Runs the built program as a person would, through a shell.

#include <string>

namespace zeroplan::tests {

struct Run {
  int exit_code = -1;
  std::string output;  // standard output
  std::string errors;  // standard error
  double seconds = 0;
};

/// Runs `zeroplan ARGUMENTS`; the text is the shell's, quotes and redirections included.
Run zeroplan(const std::string& arguments);

/// Runs any command line from the source folder.
Run shell(const std::string& command);

}  // namespace zeroplan::tests
