// How far off is the cost model? Front door: assess.
#include "tests/accuracy/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "tests/accuracy/problem_of_row.hpp"

namespace zeroplan::accuracy {
namespace {

using Key = std::tuple<std::string, std::string, std::string>;

// Assumes a sorted list that is not empty.
double median(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// By nearest rank: the smallest value that this share of the list does not exceed.
double percentile(const std::vector<double>& sorted, std::size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Family summary(const Key& key, const std::vector<const Result*>& results) {
  std::vector<double> errors, sizes;
  for (const Result* result : results) {
    errors.push_back(result->error());
    sizes.push_back(std::abs(result->error()));
  }
  std::sort(sizes.begin(), sizes.end());
  const auto& [family, runtime, instrument] = key;
  return {.family = family,
          .runtime = runtime,
          .instrument = instrument,
          .n = errors.size(),
          .mean = mean(sizes),
          .median = median(sizes),
          .p95 = percentile(sizes, 95),
          .max = sizes.back(),
          .bias = mean(errors),
          .in_band = static_cast<std::size_t>(
              std::ranges::count_if(results, [](const Result* r) { return r->in_band(); }))};
}

std::vector<Family> families_of(const std::vector<Result>& results,
                                const std::vector<Judgement>& judgements) {
  std::map<Key, std::vector<const Result*>> known;
  for (const Result& r : results) known[{r.family, r.runtime, r.instrument}].push_back(&r);
  std::vector<Family> families;
  families.reserve(known.size());
  for (const auto& [key, list] : known) {
    Family& family = families.emplace_back(summary(key, list));
    for (const Judgement& judgement : judgements) {
      if (judgement.family != family.family) continue;
      if (!judgement.right()) ++family.verdicts_wrong;
      if (judgement.verdict == Verdict::tight) ++family.tight;
    }
  }
  return families;
}

void add(const Row& row, Report& report) {
  Prediction prediction = predict(row);
  ++report.predicted;
  if (prediction.judgement) report.judgements.push_back(std::move(*prediction.judgement));
  if (prediction.step) report.steps.push_back(std::move(*prediction.step));
  for (Result& result : prediction.memory) report.memory.push_back(std::move(result));
}

}  // namespace

std::size_t Report::right_verdicts() const {
  return static_cast<std::size_t>(std::count_if(judgements.begin(), judgements.end(),
                                                [](const Judgement& j) { return j.right(); }));
}

Report assess(const std::vector<Row>& rows) {
  Report report{.rows = rows.size()};
  for (const Row& row : rows) {
    try {
      add(row, report);
    } catch (const Skip& skip) {
      ++report.skipped[skip.what()];
    }
  }
  report.memory_families = families_of(report.memory, report.judgements);
  report.step_families = families_of(report.steps, report.judgements);
  return report;
}

}  // namespace zeroplan::accuracy
