#pragma once
// Groups of measured steps, and what a fit sees where one is left out.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/holdout/constant.hpp"
#include "tests/holdout/sample.hpp"

namespace zeroplan::holdout {

/// Family and group of samples, with these.
using Groups = std::map<std::pair<std::string, std::string>, std::vector<const Sample*>>;

/// The samples of the study's GPUs that are fitted on.
Groups groups_of(const Study& study, const std::vector<Sample>& samples);

/// Whether the study's constants are those of the sample's GPU.
bool is_of(const Study& study, const Sample& sample);

/// What a fit sees without this group, and without those of its name in other families, which are
/// the same model and GPU in another format: at most so many rows a group, evenly chosen, since
/// vTrain's thousand steps are sums of few numbers; and no family of a few rows, which would weigh
/// as much as any other.
constexpr std::size_t most_of_a_group = 100;
std::vector<const Sample*> all_but(const Groups& groups,
                                   const Groups::key_type& held_out,
                                   std::size_t most = most_of_a_group);

}  // namespace zeroplan::holdout
