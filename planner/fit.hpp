#pragma once
// Will it fit? Chooses what was left open, and says what would help when it does not.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "planner/request.hpp"

namespace zeroplan {

/// A change to the layout after which it fits.
struct NearestFit {
  std::string change;  // "recompute full (was none)"
  Bytes device;        // of the worst stage afterwards
  double step_seconds = 0;
};

struct FitAnswer {
  Problem problem;
  Estimate estimate;
  StepTime step;
  std::vector<std::string> chosen;
  std::vector<std::string> assumptions;
  std::optional<std::int64_t>
      fewest_gpus;  // smallest count that fits; only when no layout field was given
  std::vector<NearestFit> nearest_fits;  // least intrusive first; only when it does not fit
};

/// The runtime cannot execute what was asked, with the nearest values that it can.
struct Refusal {
  std::string message;
};

/// The given layout, completed; of several completions the first in order of preference that fits
/// with its whole band, else that fits at all, else the one that needs least of those that may, or
/// of all: each with the allocator replayed, wherever that can decide. The order is that of
/// candidates.cpp, a rule of thumb: what each field costs, without timing any; sweep times them.
std::variant<FitAnswer, Refusal> fit(const Request& request);

/// The most GPUs that an answer looks at.
inline constexpr std::int64_t most_gpus = 65'536;

/// The smallest number of GPUs of this kind on which some layout fits: parts of a node, then whole
/// nodes. Empty when none up to `limit` does.
std::optional<std::int64_t> fewest_gpus(const Request& request, std::int64_t limit);

}  // namespace zeroplan
