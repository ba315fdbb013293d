// Which constants fit best? Front door: fitted.
#include "tests/holdout/fit.hpp"

#include <cmath>
#include <map>

namespace zeroplan::holdout {
namespace {

constexpr double least_gain = 1e-4;  // of the mean error: below it a constant stays

// One line search of a constant; whether it moved.
bool improve(const Constant& constant,
             const std::vector<const Sample*>& samples,
             double step,
             TimeConstants& constants,
             double& best) {
  bool moved = false;
  for (const double factor : {1 + step, 1 / (1 + step)}) {
    for (;;) {
      TimeConstants tried = constants;
      constant.of(tried) *= factor;
      const double error = mean_error(samples, tried);
      if (error > best - least_gain) break;
      constants = tried;
      best = error;
      moved = true;
    }
    if (moved) break;
  }
  return moved;
}

}  // namespace

double mean_error(const std::vector<const Sample*>& samples, const TimeConstants& constants) {
  struct Sum {
    double errors = 0;
    double count = 0;
  };
  std::map<std::string_view, Sum> families;
  for (const Sample* sample : samples) {
    Sum& sum = families[sample->family];
    sum.errors += std::abs(std::log(predicted_seconds(*sample, constants) / sample->measured));
    sum.count += 1;
  }
  double mean = 0;
  for (const auto& [name, sum] : families) mean += sum.errors / sum.count;
  return mean / static_cast<double>(families.size());
}

bool is_seen(const Constant& constant,
             const std::vector<const Sample*>& samples,
             const TimeConstants& constants) {
  TimeConstants other = constants;
  constant.of(other) *= 1.2;
  for (const Sample* sample : samples) {
    if (predicted_seconds(*sample, other) != predicted_seconds(*sample, constants)) return true;
  }
  return false;
}

TimeConstants fitted(const Study& study,
                     const std::vector<const Sample*>& samples,
                     const TimeConstants& start) {
  TimeConstants constants = start;
  std::vector<const Constant*> free;
  for (const Constant& constant : study.constants) {
    if (is_seen(constant, samples, start)) {
      free.push_back(&constant);
    } else {
      constant.of(constants) = constant.neutral;
    }
  }
  double best = mean_error(samples, constants);
  for (const double step : {0.2, 0.1, 0.05, 0.02, 0.01}) {
    for (int round = 0; round < 4; ++round) {
      bool moved = false;
      for (const Constant* constant : free) {
        moved |= improve(*constant, samples, step, constants, best);
      }
      if (!moved) break;
    }
  }
  return constants;
}

}  // namespace zeroplan::holdout
