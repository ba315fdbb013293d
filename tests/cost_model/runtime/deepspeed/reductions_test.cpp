// Which of the reductions that buckets ask for in the backward passes of layers stands highest?
#include "cost_model/runtime/deepspeed/reductions.hpp"

#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

// A table, two layers of three tensors, the norm and the head.
const std::vector<std::int64_t> sizes{10, 4, 4, 2, 4, 4, 2, 1, 10};
const std::vector<std::size_t> begins{1, 4, 7};

// Its gradients come last first; before the last of them most of its activations have gone.
LayerLevels layer() {
  const Bytes small{2 * 256}, large{2 * 512};
  return {.left = Bytes{10'000},
          .gradients = {{small, Bytes{5000}}, {large, Bytes{4000}}, {large, Bytes{-2000}}},
          .at_end = Bytes{-9000}};
}

}  // namespace

TEST_CASE("a reduction is known by the gradient that finds no room, among those of its layer") {
  const std::vector<std::int64_t> live{0, 11, 12, 13, 14, 15, 16, 0, 0};
  const std::vector<BucketCopy> copies{{7, 30}, {4, 20}, {2, 25}, {0, 9}};
  const std::vector<Reduction> reductions = reductions_in_layers(copies, sizes, begins, live);
  REQUIRE(reductions.size() == 2);  // not what head and embedding ask for
  CHECK(reductions[0].layer == 1);
  CHECK(reductions[0].elements == 4);
  CHECK(reductions[0].before == 1);  // tensor 5's gradient, as large, came before
  CHECK(reductions[0].live == 14);
  CHECK(reductions[1].layer == 0);
  CHECK(reductions[1].before == 0);
  CHECK(reductions[1].copied == 25);
}

TEST_CASE("a copy lower down counts beside the activations that are still there") {
  const LayerLevels of = layer();
  const std::vector<const LayerLevels*> levels{&of, &of};
  const Reduction above{.layer = 1, .elements = 256, .copied = 1000};
  Reduction below{.layer = 0, .elements = 256, .copied = 5999};
  CHECK(highest({{above, below}}, levels, 2)->layer == 1);
  below.copied = 6001;  // 10,000 bytes of the layer above are gone
  CHECK(highest({{above, below}}, levels, 2)->layer == 0);
  CHECK(!highest({}, levels, 2));
}

TEST_CASE(
    "of two gradients that are alike each has its own moment, and one that is unknown the end's") {
  const LayerLevels of = layer();
  const std::vector<const LayerLevels*> levels{&of};
  const Reduction early{.elements = 512, .before = 0, .copied = 1000};
  const Reduction late{.elements = 512, .before = 1, .copied = 3999};
  CHECK(highest({{early, late}}, levels, 2)->before == 0);
  const Reduction norm{.elements = 2000, .copied = 7499};
  CHECK(highest({{early, norm}}, levels, 2)->elements == 512);
  CHECK(highest({{early, {.elements = 2000, .copied = 7501}}}, levels, 2)->elements == 2000);
}
