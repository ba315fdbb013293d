#pragma once
// Private to the comparison and its page: a row as people read it.

#include <string>

#include "cli/compare/compare_rows.hpp"

namespace zeroplan {

struct RowWords {
  std::string name;        // with the unit that its numbers are in
  std::string a, b;        // a dash where a side has none
  std::string difference;  // signed; empty where there is none to tell
};

/// Bytes in GiB, seconds to the millisecond, parts in per cent.
RowWords row_words(const CompareRow& row);

/// What the rows of a section are about, with their unit where all have one.
std::string section_words(const std::string& section);

}  // namespace zeroplan
