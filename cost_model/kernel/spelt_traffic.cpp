// Which operators are a layer of Transformers? Front door: add_spelt.
#include "cost_model/kernel/spelt_traffic.hpp"

#include <algorithm>
#include <array>
#include <string_view>

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

// Cubed, scaled, added, scaled, its tanh, one more, half the input, the product. Backward: both of
// the product's gradients, half of one, the tanh's, both scales', the square, three times that,
// times the gradient, two sums.
constexpr Both gelu{{8, 2 + 2 + 3 + 2 + 2 + 2 + 2 + 3},
                    {11, 3 + 3 + 2 + 3 + 2 + 2 + 2 + 2 + 3 + 2 * 3}};

// What is positive, and its square. Backward: the first power, twice that, times the gradient; what
// was positive.
constexpr Both squared_relu{{2, 2 + 2}, {4, 2 + 2 + 3 + 3}};

// Projections of one input: their gradients of it are added up.
constexpr Both another_projection{{}, {1, 3}};

// Under autocast nothing of a norm is widened or narrowed: squared, its mean, times the root of
// that, weighed. Backward: the gradient times the weight, and times what was normalised, and the
// sum of that over rows; times the root, and times the input, and its sum over features; the mean's
// expanded; the square's, as above; the sum of both paths.
constexpr Both wide_norm{
    {6, 2 * wide + wide + 2 * wide + 2 * wide},
    {14, 2 * wide + 9 * wide + wide + 2 * wide + wide + wide + 2 * wide + 2 * wide + 3 * wide}};

// Products with fp32 cosines and sines are fp32, and so is their sum, which attention's kernel has
// cast. Backward that is widened again, and both products are narrowed.
constexpr Both wide_rotation{{6, 2 * cast + 1 + 2 + 3 * wide + cast},
                             {11, cast + 2 * 2 * wide + 2 * cast + 1 + 3 + 2 * 3 + 2}};

// A power is fp32, and all that follows but half the input. What reads the input and gives it a
// gradient is cast, and so is the result for the linear that reads it.
constexpr Both wide_gelu{
    {10, cast + 2 * wide + 2 * wide + (narrow + 2 * wide) + 3 * 2 * wide + 2 + (narrow + 2 * wide) +
             cast},
    {15, cast + 3 * wide + cast + (narrow + 2 * wide) + 2 + 3 * wide + 2 * wide + cast + 2 * wide +
             2 * wide + 2 * wide + 3 * wide + cast + 2 * 3}};

// The square is fp32.
constexpr Both wide_squared_relu{{4, 2 + cast + 2 * wide + cast},
                                 {6, cast + 2 * wide + 2 * wide + 3 * wide + cast + 3}};

constexpr Both another_wide_projection{{}, {1, 3 * wide}};

constexpr Both operators_of(SpeltPart part, bool autocast) {
  switch (part) {
    case SpeltPart::norm:
      return autocast ? wide_norm : norm;
    case SpeltPart::rotation:
      return autocast ? wide_rotation : rotation;
    case SpeltPart::activation:
      return activation;
    case SpeltPart::gelu:
      return autocast ? wide_gelu : gelu;
    case SpeltPart::squared_relu:
      return autocast ? wide_squared_relu : squared_relu;
    case SpeltPart::another_projection:
      break;
  }
  return autocast ? another_wide_projection : another_projection;
}

}  // namespace

bool spells_gelu(const ModelSpec& model) {
  constexpr std::array<std::string_view, 4> families{"gpt2", "gpt_neo", "gptj", "phi"};
  return std::ranges::find(families, model.family) != families.end();
}

bool spells_mlp(const ModelSpec& model) {
  return model.mlp.gated || model.mlp.squared_relu || spells_gelu(model);
}

void add_spelt_mlp(
    std::vector<Traffic>& out, const ModelSpec& model, Bytes branch, Bytes input, bool autocast) {
  if (!model.mlp.gated) {
    const SpeltPart part = model.mlp.squared_relu ? SpeltPart::squared_relu : SpeltPart::gelu;
    return add_spelt(out, Module::activation, part, branch, autocast);
  }
  add_spelt(out, Module::activation, SpeltPart::activation, branch, autocast);
  add_spelt(out, Module::activation, SpeltPart::another_projection, input, autocast);
}

void add_spelt(
    std::vector<Traffic>& out, Module module, SpeltPart part, Bytes tensor, bool autocast) {
  const auto each = [&](const Operators& of) {
    return of.kernels > 0 ? Bytes{of.passes * tensor.count() / of.kernels} : Bytes{};
  };
  const Both both = operators_of(part, autocast);
  if (both.forward.kernels > 0) {
    out.push_back({module, Access::streaming, each(both.forward), {}, both.forward.kernels});
  }
  out.push_back({module, Access::streaming, {}, each(both.backward), both.backward.kernels});
}

// Copied out of the projection, its sigmoid, and the product; back, both of the product's
// gradients, the sigmoid's, and what is put together with that of the queries. Compiled, sigmoid
// and product are one kernel each way, and the projection's gradients are put together at once.
void add_output_gate(std::vector<Traffic>& out, Bytes output, bool spells_out) {
  constexpr std::int64_t copied = 2, sigmoid = 2, product = 3, joined = 4;
  if (!spells_out) {
    constexpr std::int64_t both_gradients = 5;
    out.push_back({Module::core_attention, Access::streaming, (copied + product) * output,
                   (both_gradients + joined / 2) * output});
    return;
  }
  out.push_back({Module::core_attention, Access::streaming, (copied + sigmoid + product) * output,
                 (3 * product + joined) * output});
}

}  // namespace zeroplan
