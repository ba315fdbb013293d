// First values belong to elements of the model, however few of them a rank asks for.
#include "validator/model/unit.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"
#include "validator/device/bf16.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

std::vector<float> values_of(const Unit& unit,
                             std::int64_t tp_rank,
                             std::int64_t first,
                             std::int64_t count) {
  std::vector<float> wide;
  for (const Bf16 value : first_values(unit, tp_rank, first, count)) wide.push_back(widen(value));
  return wide;
}

}  // namespace

TEST_CASE("any range of a unit's first values is that part of them all") {
  std::mt19937 draw(29);
  for (const ModelSpec& model : {tests::tiny_llama(), tests::tiny_gpt()}) {
    for (const std::int64_t tp : {1, 2}) {
      const Problem p = tests::tiny_problem(model, {.tp = tp});
      const Shape shape = shape_of(p, tp - 1);
      for (const Unit& unit : {words_unit(shape), layer_unit(shape, 1), head_unit(shape, 3)}) {
        const std::int64_t all = unit.elements();
        const std::vector<float> whole = values_of(unit, tp - 1, 0, all);
        REQUIRE(std::any_of(whole.begin(), whole.end(), [](float value) { return value != 0; }));
        for (int i = 0; i < 20; ++i) {
          const std::int64_t first = static_cast<std::int64_t>(draw()) % all;
          const std::int64_t count = static_cast<std::int64_t>(draw()) % (all - first + 1);
          const std::vector<float> part = values_of(unit, tp - 1, first, count);
          REQUIRE(std::equal(part.begin(), part.end(), whole.begin() + first,
                             whole.begin() + first + count));
        }
        REQUIRE(values_of(unit, tp - 1, all, 7) == std::vector<float>(7, 0.0F));
      }
    }
  }
}

// The same element, whichever rank of tensor parallelism holds it: rows of "up" follow each other.
TEST_CASE("the model's values do not depend on how it is divided") {
  const Problem whole = tests::tiny_problem(tests::tiny_llama(), {.tp = 1});
  const Problem halved = tests::tiny_problem(tests::tiny_llama(), {.tp = 2});
  const Unit one = layer_unit(shape_of(whole, 0), 0);
  const Unit half = layer_unit(shape_of(halved, 1), 0);
  const std::int64_t columns = 32;
  const std::int64_t rows = 48;  // of the gate, of which each rank has 24
  const std::vector<float> all = values_of(one, 0, one.offset("up"), rows * columns);
  const std::vector<float> own = values_of(half, 1, half.offset("up"), rows / 2 * columns);
  REQUIRE(std::equal(own.begin(), own.end(), all.begin() + rows / 2 * columns));
}
