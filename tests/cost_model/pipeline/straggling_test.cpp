#include "cost_model/pipeline/straggling.hpp"

#include "presets/catalog.hpp"
#include "tests/catch.hpp"

namespace zeroplan {
namespace {

double part(const char* gpu, std::int64_t gpus) {
  return straggling_part(cluster_of(gpu, gpus));
}

TEST_CASE("each doubling beyond 256 GPUs is waited for, on newer ones less") {
  REQUIRE(part("A100-80GB", 256) == 0);
  REQUIRE(part("A100-80GB", 8) == 0);
  REQUIRE(part("A100-80GB", 512) > 0);
  REQUIRE(part("A100-80GB", 2048) == Approx(3 * part("A100-80GB", 512)));
  REQUIRE(part("H100-80GB", 2048) < part("A100-80GB", 2048) / 2);
  REQUIRE(part("H100-80GB", 2048) > 0);
}

}  // namespace
}  // namespace zeroplan
