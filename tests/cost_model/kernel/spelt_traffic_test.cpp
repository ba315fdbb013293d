#include "cost_model/kernel/spelt_traffic.hpp"

#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

struct Counted {
  SpeltPart part;
  std::int64_t forward, forward_passes;  // kernels, and how often they move the tensor
  std::int64_t backward, backward_passes;
};

// Operators that PyTorch 2.14's dispatcher showed of Llama's norm, rotation and gated activation,
// with what each reads and writes of more than a number a row; views move nothing. The sum of two
// projections' gradients is autograd's.
const Counted counted[] = {
    {SpeltPart::norm, 8, 18, 16, 46},
    {SpeltPart::rotation, 5, 10, 8, 16},
    {SpeltPart::activation, 2, 5, 3, 9},
    {SpeltPart::another_projection, 0, 0, 1, 3},
};

}  // namespace

TEST_CASE("what Transformers spells out are the operators that PyTorch runs") {
  constexpr Bytes tensor{5 * 48 * 1024};  // divisible by each number of kernels
  for (const Counted& c : counted) {
    std::vector<Traffic> all;
    add_spelt(all, Module::qkv, c.part, tensor);
    std::int64_t kernels[2] = {};
    Bytes moved[2];
    for (const Traffic& t : all) {
      REQUIRE(t.module == Module::qkv);
      const bool backward = t.forward == Bytes{};
      kernels[backward] += t.times;
      moved[backward] += t.times * (t.forward + t.backward);
    }
    CAPTURE(static_cast<int>(c.part));
    REQUIRE(kernels[0] == c.forward);
    REQUIRE(kernels[1] == c.backward);
    REQUIRE(moved[0] == c.forward_passes * tensor);
    REQUIRE(moved[1] == c.backward_passes * tensor);
  }
}
