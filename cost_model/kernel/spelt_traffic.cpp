// Which operators are a layer of Transformers? Front door: add_spelt.
#include "cost_model/kernel/spelt_traffic.hpp"

namespace zeroplan {
namespace {

// Operators, and the passes over a 16-bit tensor that they make together; fp32 counts twice. Those
// of one number a row move next to nothing, and start all the same.
struct Operators {
  std::int64_t kernels = 0;
  std::int64_t passes = 0;
};

struct Both {
  Operators forward, backward;
};

constexpr std::int64_t narrow = 1, wide = 2;
constexpr std::int64_t cast = narrow + wide;

// Widened, squared, its mean, times the root of that, narrowed, weighed. Backward: the gradient
// times the weight, and times what was normalised, and the sum of that over rows; widened; times
// the root, and times the input, and its sum over features; the mean's expanded; the square's,
// which makes the power again, doubles it and multiplies; the sum of both paths; narrowed.
constexpr Both norm{{6 + 2, cast + 2 * wide + wide + 2 * wide + cast + 2 * narrow},
                    {13 + 3, 2 * narrow + 3 * narrow + narrow + cast + 2 * wide + 3 * wide + wide +
                                 wide + 2 * wide + 2 * wide + 3 * wide + 3 * wide + cast}};

// Two products, the half that changes sign, halves put together, the sum. Backward: both products,
// the sign, each half padded with zeros, their sum and that of both products; and a copy in the
// order of the projection's output.
constexpr Both rotation{{5, 2 * 2 + 1 + 2 + 3}, {8, 2 * 2 + 1 + 3 + 3 + 3 + 2}};

// The gate's SiLU and the product; the product's gradients and the SiLU's.
constexpr Both activation{{2, 2 + 3}, {3, 3 + 3 + 3}};

// Projections of one input: their gradients of it are added up.
constexpr Both another_projection{{}, {1, 3}};

constexpr Both operators_of(SpeltPart part) {
  switch (part) {
    case SpeltPart::norm:
      return norm;
    case SpeltPart::rotation:
      return rotation;
    case SpeltPart::activation:
      return activation;
    case SpeltPart::another_projection:
      break;
  }
  return another_projection;
}

}  // namespace

void add_spelt(std::vector<Traffic>& out, Module module, SpeltPart part, Bytes tensor) {
  const auto each = [&](const Operators& of) {
    return of.kernels > 0 ? Bytes{of.passes * tensor.count() / of.kernels} : Bytes{};
  };
  const Both both = operators_of(part);
  if (both.forward.kernels > 0) {
    out.push_back({module, Access::streaming, each(both.forward), {}, both.forward.kernels});
  }
  out.push_back({module, Access::streaming, {}, each(both.backward), both.backward.kernels});
}

}  // namespace zeroplan
