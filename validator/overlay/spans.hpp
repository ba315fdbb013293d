#pragma once
// Stretches of time, and what several of them cover together.

#include <span>
#include <vector>

namespace zeroplan {

struct Span {
  double start = 0;
  double end = 0;
};

/// What they cover, in order of time, none touching the next.
std::vector<Span> covered(std::vector<Span> spans);

/// Seconds of `spans`, which are as `covered` gives them.
double length(std::span<const Span> spans);

/// Seconds of `one` that `spans`, as `covered` gives them, do not cover.
double uncovered(const Span& one, std::span<const Span> spans);

}  // namespace zeroplan
