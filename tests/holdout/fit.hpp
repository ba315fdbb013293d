#pragma once
// Constants that make the predicted steps nearest to the measured ones.

#include <vector>

#include "tests/holdout/constant.hpp"
#include "tests/holdout/sample.hpp"

namespace zeroplan::holdout {

/// Mean |log error| of each family, then the mean over families: a family of a thousand rows says
/// as much as one of ten.
double mean_error(const std::vector<const Sample*>& samples, const TimeConstants& constants);

/// Coordinate search from `start`: each constant in turn goes up or down by a part of itself as
/// long as that helps, and the part shrinks from a fifth to a hundredth. What no sample shows is
/// neutral.
TimeConstants fitted(const Study& study,
                     const std::vector<const Sample*>& samples,
                     const TimeConstants& start);

/// Whether any sample's prediction depends on the constant.
bool is_seen(const Constant& constant,
             const std::vector<const Sample*>& samples,
             const TimeConstants& constants);

}  // namespace zeroplan::holdout
