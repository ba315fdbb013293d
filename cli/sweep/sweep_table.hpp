#pragma once
// Layouts of a sweep as a table for people, of so many letters a line; 0: as many as it takes.

#include <string>
#include <vector>

#include "planner/sweep/sweep.hpp"

namespace zeroplan {

/// The plans, numbered, with their played memory; columns in which all have the usual value are
/// left out. What ties with the fastest is marked `=`, what is recommended `*`.
std::string plans_table(const SweepAnswer& answer, std::size_t width);

/// The front, of which as many rows as are short to read, evenly spread, fastest first; with a line
/// that says of how many.
std::string front_table(const std::vector<Scored>& front,
                        const SweepQuestion& question,
                        std::size_t width);

}  // namespace zeroplan
