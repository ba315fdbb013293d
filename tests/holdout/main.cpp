// script/holdout: fits the constants of step time on all groups but one, and says how far off the
// law is on that one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include "presets/input_error.hpp"
#include "tests/holdout/fit.hpp"

using namespace zeroplan;
using namespace zeroplan::holdout;

namespace {

constexpr const char* usage =
    "usage: script/holdout [FILE.jsonl ...] [--set NAME=VALUE ...] [--fit | --given] [--free A,B]";

struct Options {
  std::vector<std::string> files;
  TimeConstants constants;
  bool fit = false;    // on all groups, and show the constants
  bool given = false;  // only the errors with the constants as they are
  bool rows = false;
  std::string only;
  std::string free;
};

void set_constant(TimeConstants& constants, std::string_view text) {
  const std::size_t sign = text.find('=');
  const Constant* constant = find_constant(text.substr(0, sign));
  if (sign == std::string_view::npos || constant == nullptr) {
    throw InputError(fmt::format("no constant in {}; {}", text, usage));
  }
  constant->of(constants) = std::stod(std::string(text.substr(sign + 1)));
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--fit") {
      options.fit = true;
    } else if (word == "--given") {
      options.given = true;
    } else if (word == "--rows") {
      options.rows = true;
    } else if (word == "--study" && i + 1 < argc) {
      options.only = argv[++i];
    } else if (word == "--free" && i + 1 < argc) {
      options.free = argv[++i];
    } else if (word == "--set" && i + 1 < argc) {
      set_constant(options.constants, argv[++i]);
    } else if (word.starts_with('-')) {
      throw InputError(fmt::format("unknown option {}; {}", word, usage));
    } else {
      options.files.emplace_back(word);
    }
  }
  if (options.files.empty()) {
    for (const char* name : {"measured.jsonl", "timing.jsonl"}) {
      options.files.push_back(fmt::format("{}/tests/reference/{}", ZEROPLAN_SOURCE_DIR, name));
    }
  }
  return options;
}

using Group = std::pair<std::string, std::string>;  // family, group

// Absolute errors, as fractions.
struct Errors {
  std::vector<double> sizes;
  double sum = 0;

  void add(double error) {
    sizes.push_back(std::abs(error));
    sum += error;
  }
  void add(const Errors& other) {
    sizes.insert(sizes.end(), other.sizes.begin(), other.sizes.end());
    sum += other.sum;
  }
  double mean() const {
    double total = 0;
    for (const double s : sizes) total += s;
    return total / static_cast<double>(sizes.size());
  }
  double percentile(double part) const {
    std::vector<double> sorted = sizes;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
  }
  double bias() const { return sum / static_cast<double>(sizes.size()); }
};

Errors errors_of(const std::vector<const Sample*>& samples, const TimeConstants& constants) {
  Errors errors;
  for (const Sample* s : samples) errors.add(predicted_seconds(*s, constants) / s->measured - 1);
  return errors;
}

// A family has at most so many rows in a fit, evenly chosen: vTrain's thousand steps are sums of
// few numbers.
std::vector<const Sample*> thinned(const std::map<Group, std::vector<const Sample*>>& groups,
                                   const Group& held_out) {
  constexpr std::size_t most = 100;
  std::vector<const Sample*> chosen;
  for (const auto& [group, samples] : groups) {
    if (group == held_out) continue;
    const std::size_t every = (samples.size() + most - 1) / most;
    for (std::size_t i = 0; i < samples.size(); i += every) chosen.push_back(samples[i]);
  }
  return chosen;
}

void print_line(std::string_view name, const Errors& given, const Errors& held) {
  fmt::print("  {:<46} {:>5} {:>7.1f}% {:>7.1f}% {:>7.1f}% {:>8.1f}% {:>+7.1f}%\n", name,
             given.sizes.size(), 100 * given.mean(), 100 * held.mean(), 100 * held.percentile(0.5),
             100 * held.percentile(0.95), 100 * held.bias());
}

void run(const Study& study, const Options& options, const std::vector<Sample>& samples) {
  std::map<Group, std::vector<const Sample*>> groups;
  for (const Sample& s : samples) {
    const auto& generation = generation_of(s.problem.cluster.gpu);
    if (generation.name == options.constants.generations[static_cast<std::size_t>(study.generation)].name) {
      groups[{s.family, s.group}].push_back(&s);
    }
  }
  std::vector<Constant> kept;
  for (const Constant& c : study.constants) {
    if (options.free.empty() || ("," + options.free + ",").find(fmt::format(",{},", c.name)) != std::string::npos) kept.push_back(c);
  }
  Study own = study;
  own.constants = kept;
  TimeConstants start = options.constants;
  if (options.fit) {
    start = fitted(own, thinned(groups, {}), start);
    fmt::print("{}: ", study.name);
    for (const Constant& c : study.constants) fmt::print(" {}={:.5g}", c.name, c.of(start));
    fmt::print("\n");
  }
  fmt::print("{}\n  {:<46} {:>5} {:>8} {:>8} {:>8} {:>9} {:>8}\n", study.name, "group held out", "n",
             "given", "held out", "median", "p95", "bias");
  if (options.rows) {
    for (const auto& [group, members] : groups)
      for (const Sample* s : members)
        fmt::print("{} {:.6f} {:.6f}\n", s->id, predicted_seconds(*s, start), s->measured);
    return;
  }
  std::map<std::string, std::pair<Errors, Errors>> families;
  for (const auto& [group, members] : groups) {
    const TimeConstants constants =
        options.given || options.fit ? start : fitted(own, thinned(groups, group), start);
    const Errors given = errors_of(members, start);
    const Errors held = errors_of(members, constants);
    print_line(group.first + ": " + group.second, given, held);
    if (!options.given && !options.fit) {
      fmt::print("      ");
      for (const Constant& c : own.constants) fmt::print(" {}={:.4g}", c.name, c.of(const_cast<TimeConstants&>(constants)));
      fmt::print("\n");
    }
    families[group.first].first.add(given);
    families[group.first].second.add(held);
    std::fflush(stdout);
  }
  for (const auto& [name, errors] : families) print_line("= " + name, errors.first, errors.second);
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  std::vector<accuracy::Row> rows;
  for (const std::string& file : options.files) {
    for (accuracy::Row& row : accuracy::read_corpus(file)) rows.push_back(std::move(row));
  }
  const std::vector<Sample> samples = samples_of(rows);
  for (const Study& study : studies()) {
    if (options.only.empty() || options.only == study.name) run(study, options, samples);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "holdout: error: {}\n", error.what());
  return 2;
}
