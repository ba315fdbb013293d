// Which steps belong together? Front doors: groups_of, all_but.
#include "tests/holdout/groups.hpp"

#include <string_view>

namespace zeroplan::holdout {

bool is_of(const Study& study, const Sample& sample) {
  const TimeConstants constants;
  const std::string_view name = constants.generations[study.generation].name;
  return generation_of(sample.problem.cluster.gpu).name == name &&
         sample.problem.model.state_space.has_value() == study.scans;
}

Groups groups_of(const Study& study, const std::vector<Sample>& samples) {
  Groups groups;
  for (const Sample& s : samples) {
    if (!s.group.empty() && is_of(study, s)) groups[{s.family, s.group}].push_back(&s);
  }
  return groups;
}

std::vector<const Sample*> all_but(const Groups& groups,
                                   const Groups::key_type& held_out,
                                   std::size_t most) {
  constexpr std::size_t least = 4;
  std::map<std::string_view, std::size_t> rows;  // by family
  for (const auto& [group, samples] : groups) rows[group.first] += samples.size();
  std::vector<const Sample*> chosen;
  for (const auto& [group, samples] : groups) {
    if (group.second == held_out.second || rows[group.first] < least) continue;
    const std::size_t every = (samples.size() + most - 1) / most;
    for (std::size_t i = 0; i < samples.size(); i += every) chosen.push_back(samples[i]);
  }
  return chosen;
}

}  // namespace zeroplan::holdout
