#pragma once
// From the options of a search to its answer.

#include <string>
#include <vector>

#include "cli/request/arguments.hpp"
#include "planner/sweep/sweep.hpp"

namespace zeroplan {

struct Searched {
  SweepQuestion question;
  SweepAnswer answer;
};

/// The answer with what was assumed in reading the question, `notes` included. One that was stopped
/// has the best so far. Throws InputError where no layout can be executed, saying what would do.
Searched searched(const SweepArguments& arguments,
                  const Watch& watch,
                  std::vector<std::string> notes = {});

}  // namespace zeroplan
