#pragma once
// The report as a person and as a program reads it.

#include <string>

#include "tests/accuracy/statistics.hpp"

namespace zeroplan::accuracy {

/// Families, reasons of skipped rows, and one closing line.
std::string table(const Report& report);

/// One line a figure: error, predicted, measured, row. Then one line a wrong verdict.
std::string rows_table(const Report& report);

/// One JSON document.
std::string json(const Report& report);

}  // namespace zeroplan::accuracy
