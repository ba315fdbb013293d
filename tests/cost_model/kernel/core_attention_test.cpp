// Which layers' kernels are told of a window.
#include "cost_model/kernel/core_attention.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

TEST_CASE("one layer with a window is enough for a mask, from as many tokens on as it has") {
  Problem p = tests::problem(Runtime::ddp, "gemma3-1b", {});
  REQUIRE(masks_windows(p));
  p.model.attention.windowed_layers = 1;
  CHECK(masks_windows(p));
  p.training.sequence_length = p.model.attention.sliding_window;
  CHECK(masks_windows(p));
  --p.training.sequence_length;
  CHECK_FALSE(masks_windows(p));
  p.training.sequence_length = 4'096;
  p.model.attention.windowed_layers = 0;
  CHECK_FALSE(masks_windows(p));
}
