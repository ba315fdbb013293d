// What stage 2's buckets make of the ranks of one small model, which DeepSpeed 0.19.8 itself was
// run on: 6 layers of 512 features, 8 ranks, buckets of 5 million elements.
#include "cost_model/runtime/deepspeed/buckets.hpp"

#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

constexpr std::int64_t hidden = 512, wide = 1408 * hidden, table = 8192 * hidden;
constexpr std::int64_t bucket = 5'000'000, ranks = 8;

std::vector<std::int64_t> small_model() {
  std::vector<std::int64_t> sizes{table};
  for (int layer = 0; layer < 6; ++layer) {
    for (const std::int64_t size : {hidden, hidden}) sizes.push_back(size);
    for (int i = 0; i < 4; ++i) sizes.push_back(hidden * hidden);
    for (int i = 0; i < 3; ++i) sizes.push_back(wide);
  }
  sizes.push_back(hidden);
  sizes.push_back(table);
  return sizes;
}

}  // namespace

// Rank 1 owns most, the embedding among it, but has room for it only after the copy that the
// embedding's gradient waits for; rank 6 has its own by then.
TEST_CASE("the rank that owns most need not own it while others are reduced") {
  const Owned owned = owned_elements(small_model(), ranks, bucket);
  CHECK(owned.any.elements == 7'406'592);
  CHECK(owned.early.elements == 7'143'936);
  CHECK(owned.any.rank == 1);
  CHECK(owned.early.rank == 6);
}

// Two layers of 1,024 features, of which DeepSpeed was run too: rank 6 owns most, the last layer's
// tensors and the head's, when all others' gradients have gone.
TEST_CASE("the rank that owns most need not hold most at stage 1's boundary") {
  constexpr std::int64_t h = 1024;
  std::vector<std::int64_t> sizes{8192 * h};
  for (int layer = 0; layer < 2; ++layer) {
    for (const std::int64_t width : {1024, 512, 512, 1024, 2816, 2816, 2816}) {
      sizes.push_back(width * h);
    }
    for (const std::int64_t norm : {h, h}) sizes.push_back(norm);
  }
  for (const std::int64_t size : {h, 8192 * h}) sizes.push_back(size);
  const Owned owned = owned_elements(sizes, ranks, 3'000'000);
  CHECK(owned.any.rank == 6);
  CHECK(owned.any.elements == 11'275'264);
  CHECK(owned.beside.rank < 2);  // the embedding's
  CHECK(owned.beside.elements >= 8192 * h);
}

// In fp64 the largest slice of the ends' ranks is all of their part, and they own one table alone.
TEST_CASE("the rank with the largest slice need not be the one that owns most") {
  constexpr std::int64_t part = 27'662'848 / ranks;
  CHECK(most_with_slice(small_model(), ranks, 2, 8) == 2 * table + 8 * part);
  CHECK(most_with_slice(small_model(), ranks, 2, 0) == 2 * 7'406'592);
}

// The head's table, its norm and the last layer's projection, while the next gradient is there.
TEST_CASE("the gradient that finds no room is there while the bucket is reduced") {
  const Copies copies = copied_elements(small_model(), ranks, bucket);
  REQUIRE(!copies.earlier.empty());
  CHECK(copies.earlier.front().elements == table + hidden + wide);
  CHECK(copies.earlier.front().hand == 53);  // of 56: the last layer's first linear of its MLP
}

// Of [3, 20) with parts of 8: five of the first rank and eight of the second are more than a bucket
// of 10, four of the third are left.
TEST_CASE("slices are reduced at once until they are more than a bucket") {
  const AtOnce once = reduced_at_once(3, 20, 8, 10);
  CHECK(once.any == 13);
  CHECK(once.of_several == 13);
  CHECK(reduced_at_once(8, 16, 8, 10).any == 8);
  CHECK(reduced_at_once(8, 16, 8, 10).of_several == 0);  // one rank's is reduced where it is
}
