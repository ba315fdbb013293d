#pragma once
// How far off steps were by the kind of run, as far as runs were measured.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "cost_model/question/problem.hpp"
#include "cost_model/question/runtime_code.hpp"

namespace zeroplan {

/// Half the width of the band in which 95 of 100 measured steps of a kind lie, each predicted with
/// constants that were fitted without its group (script/holdout --bands; "needed" there), rounded
/// up. Of a kind with fewer than ten rows, what holds all of them and half as much again.
struct MeasuredBand {
  std::string_view architecture;
  std::int64_t bits = 16;  // of what products read
  bool experts = false;
  double half_width = 0;
};

/// Bits of what products read: 32, 16, 8 or 4.
std::int64_t product_bits(Precision precision);

/// The band of the kind that the problem is; nothing where none of `bands` is.
std::optional<StepBand> measured_band(const Problem& problem, std::span<const MeasuredBand> bands);

}  // namespace zeroplan
