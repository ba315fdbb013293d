#pragma once
// How many measured steps lie inside the band of an answer that was not fitted on them.

#include <string>
#include <vector>

#include "tests/holdout/sample.hpp"

namespace zeroplan::holdout {

/// A step as predicted with constants that were fitted without its group; of a step that is not
/// fitted on, with those that are published.
struct HeldOut {
  const Sample* sample = nullptr;
  double seconds = 0;

  /// 0.01: the measured step took one percent longer than the prediction.
  double miss() const { return sample->measured / seconds - 1; }
};
std::vector<HeldOut> held_out(const std::vector<Sample>& samples);

/// What a band is chosen by: runtime, whose layers, generation of GPU, bits of products, experts.
std::string band_family(const Problem& problem);

struct Coverage {
  std::string family;
  std::size_t n = 0;
  std::size_t inside = 0;
  double half_width = 0;  // of the band, the widest where its rows have several
  double needed = 0;      // half width that holds 95 of 100, to the nearest row

  /// Whether 90 to 97 of 100 lie inside. Fewer rows than 15 tell nothing.
  bool calibrated() const {
    constexpr std::size_t least = 15;
    return n < least || (100 * inside >= 90 * n && 100 * inside <= 97 * n);
  }
};

/// One line a step that takes more than so much longer or shorter than predicted (0.1: 10 %), the
/// farthest first.
void print_far(std::vector<HeldOut> steps, double limit);

/// By family, in the order of their names.
std::vector<Coverage> coverage(const std::vector<HeldOut>& steps);

/// One line a family; how many are not calibrated.
std::size_t print_bands(const std::vector<Coverage>& families);

}  // namespace zeroplan::holdout
