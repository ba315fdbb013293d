#pragma once
// Many questions, a line each; a line of JSON for each answer.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cli/out/exit_code.hpp"
#include "cli/request/parameters.hpp"

namespace zeroplan {

/// A document as --json writes it, and how it went.
struct BatchAnswer {
  std::string document;
  ExitCode code = ExitCode::yes;
};

/// Reads the lines of `file`, or of standard input where it is `-`, and writes for each one line,
/// in their order and as soon as it is known: the document that `answer` makes, behind the number
/// of its line; where it throws, `error` and the exit code. Empty lines and those that begin with #
/// are no questions. `workers` lines are asked at once. Returns `bad_input` where one was refused,
/// else whether any was answered with yes. Throws InputError where there is no such file or no
/// question in it.
ExitCode answer_lines(const std::string& file,
                      std::size_t workers,
                      const std::function<BatchAnswer(const std::string& line)>& answer);

/// The options of one line: as they are typed, or a JSON object of their names. Throws InputError.
std::vector<std::string> words_of_line(const CLI::App& command, const std::string& line);

}  // namespace zeroplan
