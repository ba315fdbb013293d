#pragma once
// The question of one line, over what was typed beside --batch.

#include "cli/request/arguments.hpp"

namespace zeroplan {

/// `typed` with the options of the line; settings of both, those of the line last. Throws
/// InputError where it cannot be read, asks for files of its own, or for several questions.
FitArguments question_of_line(FitArguments typed, const std::string& line);
SweepArguments question_of_line(SweepArguments typed, const std::string& line);

/// Throws InputError where what was typed beside --batch has no place there.
void check_batch(const FitArguments& typed, const OutputOptions& output);
void check_batch(const SweepArguments& typed, const OutputOptions& output);

}  // namespace zeroplan
