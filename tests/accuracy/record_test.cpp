#include "tests/accuracy/record.hpp"

#include "tests/catch.hpp"

using namespace zeroplan::accuracy;

namespace {

Report report_of(std::size_t n, double mean, std::size_t wrong, double max = 0.2) {
  Report report;
  report.step_families = {{.family = "tables",
                           .runtime = "megatron",
                           .instrument = "step_time",
                           .n = n,
                           .mean = mean,
                           .max = max,
                           .verdicts_wrong = wrong}};
  return report;
}

}  // namespace

TEST_CASE("a family that is as good as recorded, or better, passes") {
  const std::string recorded = record(report_of(10, 0.05, 1));
  CHECK(worse_than(report_of(10, 0.05, 1), recorded).empty());
  CHECK(worse_than(report_of(12, 0.04, 0), recorded).empty());
}

TEST_CASE("fewer rows, a larger error and more wrong verdicts are each said") {
  const std::string recorded = record(report_of(10, 0.05, 1));
  CHECK(worse_than(report_of(9, 0.05, 1), recorded).front().ends_with("9 rows, were 10"));
  CHECK(worse_than(report_of(10, 0.0506, 1), recorded)
            .front()
            .ends_with("mean 5.060 %, was 5.000 %"));
  CHECK(worse_than(report_of(10, 0.05, 1, 0.21), recorded)
            .front()
            .ends_with("largest 21.000 %, was 20.000 %"));
  CHECK(worse_than(report_of(10, 0.05, 2), recorded).front().ends_with("2 wrong verdicts, were 1"));
}

TEST_CASE("a family in one of the two alone is said") {
  CHECK(worse_than({}, record(report_of(10, 0.05, 1))).size() == 1);
  CHECK(worse_than(report_of(10, 0.05, 1), "").front().ends_with("not recorded"));
}
