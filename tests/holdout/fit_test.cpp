// The fit against constants that are known because the steps were made with them.
#include "tests/holdout/fit.hpp"

#include <cmath>
#include <initializer_list>
#include <stdexcept>

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using namespace zeroplan::holdout;
using tests::problem;

namespace {

const Study& study(std::string_view name) {
  for (const Study& s : studies()) {
    if (s.name == name) return s;
  }
  FAIL("no such study");
  throw std::logic_error("not reached");
}

double value(std::string_view name, TimeConstants constants) {
  return find_constant(name)->of(constants);
}

std::vector<Sample> steps_with(const TimeConstants& constants,
                               std::initializer_list<std::int64_t> widths = {2, 4, 8}) {
  std::vector<Sample> samples;
  for (const std::int64_t tp : widths) {
    for (const std::int64_t micro_batch : {1, 2}) {
      Problem p =
          problem(Runtime::megatron, "llama3-70b",
                  {.tp = tp, .micro_batch = micro_batch, .sequence_parallel = true}, "B200");
      p.cluster.gpus = tp;
      p.model.layers = 12;
      samples.push_back({"", "made", "made", p, 0});
      samples.back().measured = predicted_seconds(samples.back(), constants);
    }
  }
  return samples;
}

std::vector<const Sample*> pointers(const std::vector<Sample>& samples) {
  std::vector<const Sample*> list;
  for (const Sample& s : samples) list.push_back(&s);
  return list;
}

}  // namespace

TEST_CASE("a fit finds the constants that made the steps") {
  TimeConstants truth;
  find_constant("b.gemm")->of(truth) = 0.4;
  const std::vector<Sample> samples = steps_with(truth);
  const auto seen = pointers(samples);
  const TimeConstants start;
  REQUIRE(mean_error(seen, start) > 0.03);
  const TimeConstants found = fitted(study("Blackwell"), seen, start);
  REQUIRE(mean_error(seen, found) < 0.005);
  REQUIRE(value("b.gemm", found) == Approx(0.4).epsilon(0.03));
}

TEST_CASE("a constant that no step shows is not taken from the start") {
  const std::vector<Sample> samples = steps_with({}, {2});  // the GPU is the slower one
  const TimeConstants start;
  const Constant& host = *find_constant("engine_backward");
  REQUIRE_FALSE(is_seen(host, pointers(samples), start));
  REQUIRE(is_seen(*find_constant("b.gemm"), pointers(samples), start));
  const TimeConstants found = fitted(study("Blackwell"), pointers(samples), start);
  REQUIRE(value("engine_backward", found) == host.neutral);
}

TEST_CASE("families weigh alike in a fit, however many rows they have") {
  std::vector<Sample> samples = steps_with({});
  samples.resize(3);
  samples[0].measured *= 1.5;
  samples[0].family = "small";
  const double one = std::log(1.5);
  REQUIRE(mean_error(pointers(samples), {}) == Approx(one / 2));
}
