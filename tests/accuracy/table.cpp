// The report as a person reads it. Front door: table.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cost_model/question/units.hpp"
#include "tests/accuracy/report.hpp"

namespace zeroplan::accuracy {
namespace {

using Families = std::vector<Family>;

std::size_t widest(const Families& families, std::string Family::*column, std::string_view title) {
  std::size_t width = title.size();
  for (const Family& family : families) width = std::max(width, (family.*column).size());
  return width;
}

std::string families_table(const Families& families) {
  const std::size_t family = widest(families, &Family::family, "family");
  const std::size_t runtime = widest(families, &Family::runtime, "runtime");
  const std::size_t instrument = widest(families, &Family::instrument, "instrument");
  std::string text = fmt::format(
      "{:<{}}  {:<{}}  {:<{}}  {:>4}  {:>7}  {:>7}  {:>7}  {:>7}  {:>8}\n", "family", family,
      "runtime", runtime, "instrument", instrument, "n", "mean", "median", "p95", "max", "bias");
  for (const Family& f : families) {
    text += fmt::format(
        "{:<{}}  {:<{}}  {:<{}}  {:>4}  {:>6.2f}%  {:>6.2f}%  {:>6.2f}%  {:>6.2f}%  {:>+7.2f}%\n",
        f.family, family, f.runtime, runtime, f.instrument, instrument, f.n, 100 * f.mean,
        100 * f.median, 100 * f.p95, 100 * f.max, 100 * f.bias);
  }
  return text;
}

// One figure a line; bytes in GiB.
std::string figures(const std::vector<Result>& results, const char* unit, double scale) {
  std::string text = fmt::format("{:>9}  {:>10}  {:>10}  row\n", "error", "predicted", "measured");
  for (const Result& r : results) {
    text += fmt::format("{:>+8.2f}%  {:>6.2f} {:<3}  {:>6.2f} {:<3}  {}\n", 100 * r.error(),
                        r.predicted / scale, unit, r.measured / scale, unit, r.id);
  }
  return text;
}

}  // namespace

std::string table(const Report& report) {
  std::string text = families_table(report.memory_families);
  text += '\n' + families_table(report.step_families);
  if (!report.skipped.empty()) text += "\nskipped\n";
  for (const auto& [reason, count] : report.skipped) {
    text += fmt::format("{:>6}  {}\n", count, reason);
  }
  text += fmt::format("\n{} rows, {} predicted, {} skipped; verdicts {} right, {} wrong\n",
                      report.rows, report.predicted, report.skipped_rows(), report.right_verdicts(),
                      report.wrong_verdicts());
  return text;
}

std::string rows_table(const Report& report) {
  std::string text = figures(report.memory, "GiB", static_cast<double>(gibi));
  for (const Judgement& j : report.judgements) {
    if (j.right()) continue;
    text += fmt::format("wrong verdict: {} ({}), predicted {}\n", j.id,
                        j.outcome == Outcome::ran ? "ran" : "out of memory", name_of(j.verdict));
  }
  return text + '\n' + figures(report.steps, "s", 1) + '\n';
}

}  // namespace zeroplan::accuracy
