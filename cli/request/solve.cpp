// How far does it go? Front doors: count_gpus, lengthen_sequence, enlarge_micro_batch.
#include "cli/request/solve.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "planner/fit.hpp"
#include "presets/catalog.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

// Whole multiples of `unit` up to `most`: each of the first `steps`, then as many to every
// doubling.
std::vector<std::int64_t> tried_values(std::int64_t unit, std::int64_t most) {
  constexpr std::int64_t steps = 32;
  std::vector<std::int64_t> values;
  for (std::int64_t step = unit; step <= most; step *= 2) {
    for (std::int64_t i = step == unit ? 1 : steps / 2 + 1; i <= steps; ++i) {
      if (i * step <= most) values.push_back(i * step);
    }
  }
  return values;
}

// The last value that fits, of values that need ever more; zero where none does.
template <class Fits>
std::int64_t largest(const std::vector<std::int64_t>& values, const Fits& fits) {
  const auto end = std::partition_point(values.begin(), values.end(), fits);
  return end == values.begin() ? 0 : *(end - 1);
}

// Puts the largest of `values` that fits into the field.
void put_largest(Request& r,
                 std::optional<std::int64_t> Request::*field,
                 const std::vector<std::int64_t>& values,
                 std::string_view what,
                 std::vector<std::string>& notes) {
  const std::int64_t found = largest(values, [&](std::int64_t value) {
    r.*field = value;
    return some_layout_fits(r);
  });
  r.*field = found > 0 ? found : values.front();
  if (found == 0) {
    notes.push_back(fmt::format("no {} fits, from {} on", what, values.front()));
  } else if (found == values.back()) {
    notes.push_back(fmt::format("{} {} fits, and no larger one was tried", what, found));
  } else {
    const std::int64_t next = *std::upper_bound(values.begin(), values.end(), found);
    notes.push_back(fmt::format("{} {} is the largest that fits; {} does not", what, found, next));
  }
}

}  // namespace

void count_gpus(Request& r, std::vector<std::string>& notes) {
  const auto fewest = fewest_gpus({.request = r}, most_gpus);
  r.counts_gpus = true;
  if (!fewest) {
    notes.push_back(fmt::format("no number of {} up to {} is enough; this is one node",
                                r.cluster.gpu.name, most_gpus));
    return;
  }
  set_gpus(r.cluster, *fewest, "--gpus");
  notes.push_back(fmt::format("{} is the smallest number of {} that fits (--gpus)", *fewest,
                              r.cluster.gpu.name));
}

bool asks_largest(std::string_view text) {
  return lower_case(text) == "max";
}

void lengthen_sequence(Request& r, std::vector<std::string>& notes) {
  constexpr std::int64_t unit = 1024;
  constexpr std::int64_t most = std::int64_t{16} << 20;
  put_largest(r, &Request::sequence_length, tried_values(unit, most), "sequence length", notes);
}

void enlarge_micro_batch(Request& r, std::vector<std::string>& notes) {
  constexpr std::int64_t most = 65'536;
  std::vector<std::int64_t> values = tried_values(1, most);
  if (r.global_batch) {
    std::erase_if(values, [&](std::int64_t value) { return *r.global_batch % value != 0; });
  }
  put_largest(r, &Request::micro_batch, values, "micro-batch", notes);
}

}  // namespace zeroplan
