#pragma once
// What a held-out group tells of the law, as a person reads it.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/holdout/constant.hpp"
#include "tests/holdout/sample.hpp"

namespace zeroplan::holdout {

/// Family and group of samples, with these.
using Groups = std::map<std::pair<std::string, std::string>, std::vector<const Sample*>>;

/// The samples of the study's GPUs.
Groups groups_of(const Study& study, const std::vector<Sample>& samples);

/// One line a group and one a family: errors with the given constants, and with those fitted on
/// all other groups from there. Then which constants a group alone shows. With `fit` all groups are
/// fitted on and the constants printed instead.
void print_study(const Study& study,
                 const std::vector<Sample>& samples,
                 const TimeConstants& given,
                 bool fit);

}  // namespace zeroplan::holdout
