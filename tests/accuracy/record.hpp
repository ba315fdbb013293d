#pragma once
// Has a family got worse than it was?

#include <string>
#include <vector>

#include "tests/accuracy/statistics.hpp"

namespace zeroplan::accuracy {

/// Rows, mean and largest error, and wrong verdicts of each family and instrument, one JSON line
/// each.
std::string record(const Report& report);

/// One line a family that predicts fewer rows, is off by more, on average or in one row, or judges
/// more rows wrongly than `recorded` says; or that is in one of the two alone. Throws where it is
/// not such a record.
std::vector<std::string> worse_than(const Report& report, const std::string& recorded);

}  // namespace zeroplan::accuracy
