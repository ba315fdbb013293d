// Do the bands hold what they promise? Front doors: held_out, coverage, print_bands.
#include "tests/holdout/bands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cost_model/answer/step_band.hpp"
#include "cost_model/runtime/measured_bands.hpp"
#include "cost_model/runtime/megatron/code.hpp"
#include "tests/holdout/fit.hpp"
#include "tests/holdout/groups.hpp"

namespace zeroplan::holdout {

std::vector<HeldOut> held_out(const std::vector<Sample>& samples) {
  std::vector<HeldOut> steps;
  const TimeConstants published;
  for (const Study& study : studies()) {
    const Groups groups = groups_of(study, samples);
    for (const auto& [group, members] : groups) {
      const TimeConstants others = fitted(study, all_but(groups, group), published);
      for (const Sample* s : members) steps.push_back({s, predicted_seconds(*s, others)});
    }
  }
  for (const Sample& s : samples) {
    if (s.group.empty()) steps.push_back({&s, predicted_seconds(s, published)});
  }
  return steps;
}

void print_far(std::vector<HeldOut> steps, double limit) {
  const auto error = [](const HeldOut& s) { return s.seconds / s.sample->measured - 1; };
  std::erase_if(steps, [&](const HeldOut& s) { return std::abs(error(s)) <= limit; });
  std::ranges::sort(steps, {}, [&](const HeldOut& s) { return -std::abs(error(s)); });
  for (const HeldOut& s : steps) {
    fmt::print("{:>+8.2f}% {:>9.3f} {:>9.3f}  {}{}\n", 100 * error(s), s.seconds,
               s.sample->measured, s.sample->id, s.sample->group.empty() ? " (not fitted on)" : "");
  }
}

std::string band_family(const Problem& p) {
  if (p.runtime.kind == Runtime::megatron && waits_for_host(p)) return "megatron, for its host";
  return fmt::format("{}{}, {}, {} bits, {}", *code_of(p).name,
                     code_of(p).local_layers(p) ? " with its own layers" : "",
                     p.cluster.gpu.architecture, product_bits(p.training.precision),
                     p.model.state_space ? "hybrid"
                     : p.model.moe       ? "experts"
                                         : "dense");
}

std::vector<Coverage> coverage(const std::vector<HeldOut>& steps) {
  std::map<std::string, std::vector<const HeldOut*>> families;
  for (const HeldOut& step : steps) families[band_family(step.sample->problem)].push_back(&step);
  std::vector<Coverage> all;
  for (const auto& [name, members] : families) {
    Coverage c{.family = name, .n = members.size()};
    std::vector<double> misses;
    for (const HeldOut* step : members) {
      const double half = step_band(step->sample->problem).half_width;
      misses.push_back(std::abs(step->miss()));
      c.inside += misses.back() <= half;
      c.half_width = std::max(c.half_width, half);
    }
    std::ranges::sort(misses);
    const auto rank = std::llround(0.95 * static_cast<double>(misses.size()));
    c.needed = misses[static_cast<std::size_t>(std::max(1LL, rank)) - 1];
    all.push_back(std::move(c));
  }
  return all;
}

std::size_t print_bands(const std::vector<Coverage>& families) {
  fmt::print("{:<56} {:>5} {:>7} {:>7} {:>7}\n", "family", "n", "inside", "band", "needed");
  std::size_t wrong = 0;
  for (const Coverage& c : families) {
    fmt::print("{:<56} {:>5} {:>6.1f}% {:>6.1f}% {:>6.1f}%{}\n", c.family, c.n,
               100 * static_cast<double>(c.inside) / static_cast<double>(c.n), 100 * c.half_width,
               100 * c.needed, c.calibrated() ? "" : "  not 90 to 97");
    wrong += !c.calibrated();
  }
  return wrong;
}

}  // namespace zeroplan::holdout
