#pragma once
// Will it fit? Chooses what was left open, and says what would help when it does not.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "planner/placement.hpp"
#include "planner/request.hpp"
#include "planner/sweep/choices.hpp"

namespace zeroplan {

/// Part of the fastest plan's seconds a token by which a simpler plan may be slower.
inline constexpr double default_tie = 0.03;

/// A change to the layout after which it fits.
struct NearestFit {
  std::string change;  // "recompute full (was none)"
  Bytes device;        // of the worst stage afterwards
  double step_seconds = 0;
};

/// The fastest of all layouts that fit, beside which a recommended one stands.
struct FastestLayout {
  Problem problem;
  StepTime step;
};

struct FitAnswer {
  Problem problem;
  Estimate estimate;
  StepTime step;
  std::vector<std::string> chosen;
  std::vector<std::string> assumptions;
  std::optional<FastestLayout> fastest;  // where the layout was searched, and some fits
  std::optional<std::int64_t>
      fewest_gpus;  // smallest count that fits; only when no layout field was given
  std::vector<NearestFit> nearest_fits;      // least intrusive first; where it may not fit
  std::optional<BetterPlacement> placement;  // of the same layout, where it is faster
  Origin origin = {};                        // of the request
};

/// The runtime cannot execute what was asked, with the nearest values that it can.
struct Refusal {
  std::string message;
};

/// Where the request leaves a layout open (see leaves_layout_open): of all layouts that fit with
/// their whole band, those slower than the fastest by no more than `tie` of its time, the simplest
/// of these (see Simplicity), and of several the roomiest. Where none fits so, the one that needs
/// least: it may be tight.
///
/// Of a layout given in full the completion: of several the first in order of preference that fits
/// with its whole band, else that fits at all, else the one that needs least of those that may, or
/// of all: each with the allocator replayed, wherever that can decide. The order is that of
/// candidates.cpp. A layout given but for ZeRO's stage is one while a stage fits that the runtime is
/// usually run with, else it is open.
std::variant<FitAnswer, Refusal> fit(const Request& request, double tie = default_tie);

/// The answer of `fit` for a space whose search found no layout that fits with its whole band.
std::variant<FitAnswer, Refusal> nearest_to_fitting(const SearchSpace& space);

/// Whether some layout of the request fits with its whole band, replayed; a request that leaves the
/// layout or ZeRO's stage open is tried where memory is least.
bool some_layout_fits(const Request& request);

/// The most GPUs that an answer looks at.
inline constexpr std::int64_t most_gpus = 65'536;

/// The smallest number of GPUs of this kind on which some layout fits: parts of a node, then whole
/// nodes. Empty when none up to `limit` does; of layouts beside the candidates none up to 512 GPUs.
std::optional<std::int64_t> fewest_gpus(const SearchSpace& space, std::int64_t limit);

}  // namespace zeroplan
