// Coverage of bands by steps whose misses are known because they were made with them.
#include "tests/holdout/bands.hpp"

#include "cost_model/answer/step_band.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using namespace zeroplan::holdout;

namespace {

// As many steps of one family, of which so many miss by more than the band.
Coverage covered(int inside, int outside) {
  Problem p = tests::problem(Runtime::megatron, "llama3-70b", {.micro_batch = 8}, "GB200");
  p.training.precision = Precision::fp8;
  const double half = step_band(p).half_width;
  std::vector<Sample> samples;
  for (int i = 0; i < inside + outside; ++i) {
    // One after the other above and below.
    const double miss = (i < inside ? 0.9 : 1.1) * (i % 2 == 0 ? half : -half);
    samples.push_back({"", "made", "", p, 1 + miss});
  }
  std::vector<HeldOut> steps;
  for (const Sample& s : samples) steps.push_back({&s, 1});
  const std::vector<Coverage> families = coverage(steps);
  REQUIRE(families.size() == 1);
  CHECK(families.front().family == "megatron, Blackwell, 8 bits, dense");
  CHECK(families.front().half_width == half);
  return families.front();
}

}  // namespace

TEST_CASE("a band is calibrated that holds 90 to 97 of 100") {
  CHECK(covered(19, 1).inside == 19);
  CHECK(covered(19, 1).calibrated());
  CHECK(covered(18, 2).calibrated());
  CHECK_FALSE(covered(17, 3).calibrated());
  CHECK_FALSE(covered(20, 0).calibrated());  // wider than it says
  CHECK(covered(14, 0).calibrated());        // too few to tell
  CHECK(covered(7, 7).calibrated());
}

TEST_CASE("what a band needs is the miss that all but one in twenty stay below") {
  const Coverage c = covered(19, 1);
  CHECK(c.needed == Approx(0.9 * c.half_width));
  CHECK(covered(18, 2).needed == Approx(1.1 * c.half_width));
}
