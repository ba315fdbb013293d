#pragma once
// A prediction beside what was measured, for people, programs and spreadsheets.

#include <string>

#include "validator/validation.hpp"

namespace zeroplan {

/// Verdict, what was run of the plan, its worst rank by category, calls, numerics, and the full
/// plan counted. Bytes are whole numbers.
std::string validate_text(const engine::Validation& validation, bool quiet);

/// Schema zeroplan.validate/1: `verdict`, `backend`, `changes`, `layout`, `ranks` (each with
/// `categories` and `calls`), `losses`, `stages`, `seconds`, `full_plan` (as `ranks`).
std::string validate_json(const engine::Validation& validation);

/// One row a rank and category: predicted, measured, difference.
std::string validate_csv(const engine::Validation& validation);

/// The same of one rank of the full plan alone.
std::string counted_text(const engine::Shrunk& full, const engine::ComparedRank& rank, bool quiet);
std::string counted_json(const engine::Shrunk& full, const engine::ComparedRank& rank);
std::string counted_csv(const engine::ComparedRank& rank);

}  // namespace zeroplan
