#pragma once
// The fastest run that anyone published, by generation of GPU and width of products.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cost_model/question/problem.hpp"

namespace zeroplan {

struct PublishedMfu {
  std::string_view architecture;
  std::int64_t bits = 16;
  double mfu = 0;        // as causal_mfu counts
  std::string_view row;  // id in tests/reference; what it says was read there
  std::string_view who;
};

/// Nothing where no run is known.
std::optional<PublishedMfu> best_published_mfu(const Problem& problem);

/// Model FLOPs, causal attention by half, over the peak of the format that products read, whatever
/// the answer reports.
double causal_mfu(const Problem& problem, double step_seconds);

/// A sentence where a step of so many seconds is faster than the best published run; else nothing.
std::optional<std::string> faster_than_published(const Problem& problem, double step_seconds);

}  // namespace zeroplan
