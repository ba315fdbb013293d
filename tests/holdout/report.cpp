// How far off is the law on a group that it was not fitted on? Front door: print_study.
#include "tests/holdout/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tests/holdout/fit.hpp"

namespace zeroplan::holdout {
namespace {

class Errors {
 public:
  void add(double error) { errors_.push_back(error); }
  void add(const Errors& other) {
    errors_.insert(errors_.end(), other.errors_.begin(), other.errors_.end());
  }
  std::size_t count() const { return errors_.size(); }
  double bias() const {
    double sum = 0;
    for (const double e : errors_) sum += e;
    return sum / static_cast<double>(errors_.size());
  }
  double mean() const {
    double sum = 0;
    for (const double e : errors_) sum += std::abs(e);
    return sum / static_cast<double>(errors_.size());
  }
  // By nearest rank.
  double percentile(std::size_t percent) const {
    std::vector<double> sizes;
    for (const double e : errors_) sizes.push_back(std::abs(e));
    std::sort(sizes.begin(), sizes.end());
    return sizes[(sizes.size() * percent + 99) / 100 - 1];
  }

 private:
  std::vector<double> errors_;
};

Errors errors_of(const std::vector<const Sample*>& samples, const TimeConstants& constants) {
  Errors errors;
  for (const Sample* s : samples) errors.add(predicted_seconds(*s, constants) / s->measured - 1);
  return errors;
}

void print_errors(const std::string& name, const Errors& given, const Errors& held_out) {
  fmt::print("  {:<48} {:>5} {:>7.1f}% {:>8.1f}% {:>8.1f}% {:>8.1f}% {:>+7.1f}%\n", name,
             given.count(), 100 * given.mean(), 100 * held_out.mean(),
             100 * held_out.percentile(50), 100 * held_out.percentile(95), 100 * held_out.bias());
}

void print_unseen(const Study& study, const Groups& groups, const TimeConstants& given) {
  for (const Constant& constant : study.constants) {
    for (const auto& [group, members] : groups) {
      constexpr auto any = std::numeric_limits<std::int32_t>::max();
      if (is_seen(constant, all_but(groups, group, any), given)) continue;
      fmt::print("  only {}: {} shows {}; without it {} is assumed\n", group.first, group.second,
                 constant.name, constant.neutral);
    }
  }
}

}  // namespace

void print_study(const Study& study,
                 const std::vector<Sample>& samples,
                 const TimeConstants& given,
                 bool fit) {
  const Groups groups = groups_of(study, samples);
  if (groups.empty()) return;
  TimeConstants everything = given;
  if (fit) {
    everything = fitted(study, all_but(groups, {}), given);
    for (const Constant& c : study.constants) fmt::print("{}={:.4g} ", c.name, c.of(everything));
    fmt::print("\n");
  }
  fmt::print("{:<50} {:>5} {:>8} {:>9} {:>9} {:>9} {:>8}\n", study.name, "n",
             fit ? "before" : "given", fit ? "fitted" : "held out", "median", "p95", "bias");
  std::map<std::string, std::pair<Errors, Errors>> families;
  for (const auto& [group, members] : groups) {
    const Errors before = errors_of(members, given);
    const Errors after =
        errors_of(members, fit ? everything : fitted(study, all_but(groups, group), given));
    print_errors(group.first + ": " + group.second, before, after);
    std::fflush(stdout);
    families[group.first].first.add(before);
    families[group.first].second.add(after);
  }
  for (const auto& [name, errors] : families) print_errors(name, errors.first, errors.second);
  if (!fit) print_unseen(study, groups, given);
}

}  // namespace zeroplan::holdout
