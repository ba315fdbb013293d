#pragma once
// What a question leaves the planner to find, as far as it goes.

#include <string>
#include <string_view>
#include <vector>

#include "planner/request.hpp"

namespace zeroplan {

/// Puts the smallest number of GPUs on which some layout fits into a request whose cluster is one
/// node; where none does, that node stays. Either is appended to `notes`.
void count_gpus(Request& request, std::vector<std::string>& notes);

/// Whether a value asks for the largest: max.
bool asks_largest(std::string_view text);

/// Puts the longest sequence with which some layout fits into a request, to within 3 %; where none
/// does, the shortest that was tried. Either is appended to `notes`.
void lengthen_sequence(Request& request, std::vector<std::string>& notes);

/// Puts the most samples of a pass with which some layout fits into a request: of every number up
/// to 32, then to within 3 %; where none does, the fewest. Either is appended to `notes`.
void enlarge_micro_batch(Request& request, std::vector<std::string>& notes);

}  // namespace zeroplan
