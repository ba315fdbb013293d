// Which gradients stage 2 reduces together, against small buffers worked by hand.
#include "cost_model/runtime/deepspeed/reduction.hpp"

#include "tests/catch.hpp"

using namespace zeroplan;

// Embedding 40, four layers of 10, head 20: 100 elements, 25 a rank of four.
TEST_CASE("a bucket is emptied before it is full") {
  const Reduction made = gradient_reduction({40, 10, 10, 10, 10, 20}, 1, 4, 45);
  // Head and two layers are 40; a third does not fit. They reach into two ranks' parts.
  CHECK(made.copy_in_head == 0);
  CHECK(made.copy_in_layers == 40);
  CHECK(made.emptied_at_embedding);
  CHECK(made.copy_at_embedding == 20);
  CHECK(made.copy_at_end == 40);
  CHECK(made.most_copied() == 40);
  // 25 to 50 touch embedding and the first layer; the last two have 30 before it comes.
  CHECK(made.owned == 50);
  CHECK(made.owned_early == 30);
}

TEST_CASE("a bucket that holds all gradients is emptied once, at the end") {
  const Reduction made = gradient_reduction({40, 10, 10, 10, 10, 20}, 1, 4, 1000);
  CHECK(made.copy_at_end == 100);
  CHECK(made.most_copied() == 100);
  CHECK(!made.emptied_at_embedding);
  CHECK(made.owned_early == 0);
}

TEST_CASE("slices of a gradient larger than the bucket come together until they are more") {
  // 40 elements in slices of 10, two of which are more than the bucket; 20 for the head.
  const Reduction made = gradient_reduction({40, 10, 10, 20}, 1, 8, 15);
  CHECK(made.copy_at_end == 20);
  CHECK(made.copy_in_layers == 20);
}

TEST_CASE("what one rank owns whole is not copied") {
  const Reduction made = gradient_reduction({40, 10, 10, 20}, 1, 1, 15);
  CHECK(made.most_copied() == 0);
  CHECK(made.owned == 80);
}
