#pragma once
// What a held-out group tells of the law, as a person reads it.

#include <vector>

#include "tests/holdout/groups.hpp"

namespace zeroplan::holdout {

/// One line a group and one a family: errors with the given constants, and with those fitted on
/// all other groups from there. Then which constants a group alone shows. With `fit` all groups are
/// fitted on and the constants printed instead.
void print_study(const Study& study,
                 const std::vector<Sample>& samples,
                 const TimeConstants& given,
                 bool fit);

}  // namespace zeroplan::holdout
