#pragma once
// How far is a search, and shall it go on?

#include <functional>
#include <optional>

#include "planner/sweep/ranking.hpp"

namespace zeroplan {

/// How far a search is.
struct Progress {
  std::int64_t evaluated = 0;
  double share_done = 0;  // of the shapes
  std::optional<Scored> best;
};

/// Called now and then; the search stops when it returns false.
using Watch = std::function<bool(const Progress&)>;

}  // namespace zeroplan
