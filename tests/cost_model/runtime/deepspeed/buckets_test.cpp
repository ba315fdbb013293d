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
  CHECK(owned.most == 7'406'592);
  CHECK(owned.early == 7'143'936);
  CHECK(rank_that_owns_most(small_model(), ranks) == 1);
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
  CHECK(copies.beside_hand == table + hidden + wide);
  CHECK(copies.at_hand == wide);
  CHECK(copies.first_hand == 53);  // of 56: the last layer's first linear of its MLP
}

// The second bucket needs as many as the first, and less is gathered beside it.
TEST_CASE("of copies that are alike the one beside which most is gathered counts") {
  const std::vector<std::int64_t> sizes{10, 4, 4, 4, 4, 4, 4};
  const std::vector<std::int64_t> live{1, 2, 3, 4, 5, 6, 7};
  const Copies copies = scattered_elements(sizes, live, 3, 8);
  CHECK(copies.earlier == 8);
  CHECK(copies.first_hand == 4);
  CHECK(copies.live == live[4]);
}
