#include "cost_model/kernel/spelt_traffic.hpp"

#include <algorithm>

#include "cost_model/kernel/layer_traffic.hpp"
#include "cost_model/kernel/module_time.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

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
    {SpeltPart::norm, 8, 18, 16, 46},       {SpeltPart::rotation, 5, 10, 8, 16},
    {SpeltPart::activation, 2, 5, 3, 9},    {SpeltPart::gelu, 8, 18, 11, 28},
    {SpeltPart::squared_relu, 2, 4, 4, 10}, {SpeltPart::another_projection, 0, 0, 1, 3},
};

// As a step of Qwen2.5 0.5B and one of GPT-2 XL under autocast have them, recorded from
// Transformers 5.17 and PyTorch 2.11 on fake tensors.
const Counted under_autocast[] = {
    {SpeltPart::norm, 6, 14, 14, 46},        {SpeltPart::rotation, 6, 18, 11, 29},
    {SpeltPart::activation, 2, 5, 3, 9},     {SpeltPart::gelu, 10, 38, 15, 59},
    {SpeltPart::squared_relu, 4, 12, 6, 23}, {SpeltPart::another_projection, 0, 0, 1, 6},
};

void check(const Counted& c, bool autocast) {
  constexpr Bytes tensor{5 * 7 * 9 * 11 * 48 * 1024};  // divisible by each number of kernels
  std::vector<Traffic> all;
  add_spelt(all, Module::qkv, c.part, tensor, autocast);
  std::int64_t kernels[2] = {};
  Bytes moved[2];
  for (const Traffic& t : all) {
    REQUIRE(t.module == Module::qkv);
    const bool backward = t.forward == Bytes{};
    kernels[backward] += t.times;
    moved[backward] += t.times * (t.forward + t.backward);
  }
  CAPTURE(static_cast<int>(c.part), autocast);
  REQUIRE(kernels[0] == c.forward);
  REQUIRE(kernels[1] == c.backward);
  REQUIRE(moved[0] == c.forward_passes * tensor);
  REQUIRE(moved[1] == c.backward_passes * tensor);
}

}  // namespace

TEST_CASE("what Transformers spells out are the operators that PyTorch runs") {
  for (const Counted& c : counted) check(c, false);
  for (const Counted& c : under_autocast) check(c, true);
}

// Weights and what five of seven linears read are cast, and their gradients widened; what the other
// two give has a gradient in fp32 that is narrowed.
TEST_CASE("under autocast each linear casts what it reads of the fp32 hidden state") {
  Problem p = tests::problem(Runtime::ddp, "llama3-8b", {.dp = 8});
  constexpr std::int64_t hidden = 4096, cast = 6, weights = 218'103'808;
  const std::int64_t read = p.training.sequence_length * hidden;
  Bytes forward, backward;
  for (const Traffic& one : layer_traffic(p, LayerKind::dense)) {
    if (one.module == Module::casts) forward += one.forward, backward += one.backward;
  }
  CHECK(forward.count() == cast * (weights + 5 * read));
  CHECK(backward.count() == cast * (weights + 7 * read));
  p.training.precision = Precision::fp32;
  for (const Traffic& one : layer_traffic(p, LayerKind::dense)) CHECK(one.module != Module::casts);
}

// Read 2 bytes of a linear's output and 4 of the stream, write 4; backward 3 x 4.
TEST_CASE("under autocast 16 bits are added to an fp32 stream") {
  Problem p = tests::problem(Runtime::ddp, "llama3-8b", {.dp = 8});
  const std::int64_t elements = p.training.sequence_length * 4096;
  const auto traffic = layer_traffic(p, LayerKind::dense);
  const auto sum = std::ranges::find(traffic, Module::residual, &Traffic::module);
  REQUIRE(sum != traffic.end());
  CHECK(sum->forward.count() == 10 * elements);
  CHECK(sum->backward.count() == 12 * elements);
}

// Queries and keys are a linear's 16 bits there too, the hidden state is fp32: of the norms' passes
// those of either (under_autocast and counted).
TEST_CASE("under autocast a norm of the stream is of fp32, and one of heads is of 16 bits") {
  const Problem p = tests::problem(Runtime::ddp, "qwen3-8b", {.dp = 8});
  const auto moved = [&](Module module) {
    std::int64_t sum = 0;
    for (const Traffic& one : layer_traffic(p, LayerKind::dense)) {
      if (one.module == module) sum += one.times * (one.forward + one.backward).count();
    }
    return sum;
  };
  const std::int64_t stream = 2 * 4'096 * p.training.sequence_length;
  const std::int64_t heads = 2 * (4'096 + 1'024) * p.training.sequence_length;
  CHECK(moved(Module::input_norm) == Approx(stream * (14 + 46)).epsilon(1e-6));
  CHECK(moved(Module::query_key_norm) == Approx(heads * (18 + 46)).epsilon(1e-6));
}

// transformers v5.24.0 integrations/moe.py _grouped_mm: in the format of the weights.
TEST_CASE("autocast does not reach what experts multiply, which is fp32") {
  Problem p = tests::problem(Runtime::ddp, "mixtral-8x7b", {.dp = 8});
  const auto moved = [&](Module module) {
    Bytes sum;
    for (const Traffic& one : layer_traffic(p, LayerKind::moe)) {
      if (one.module == module) sum += one.forward + one.backward;
    }
    return sum.count();
  };
  const auto seconds = [&] {
    const ModuleTimes times = module_times(p, LayerKind::moe);
    return find(times, Module::up_proj)->forward.gemm;
  };
  const std::int64_t casts = moved(Module::casts), activated = moved(Module::expert_activation);
  const double time = seconds();
  p.training.precision = Precision::fp32;
  CHECK(moved(Module::expert_activation) == activated);
  CHECK(seconds() == Approx(time).epsilon(0.01));
  p.training.precision = Precision::bf16;
  // Attention's four matrices, three of whose products read the hidden state, and the router.
  constexpr std::int64_t cast = 6, hidden = 4096, keys = 1024, experts = 8;
  const std::int64_t read = p.training.sequence_length * hidden;
  const std::int64_t weights = 2 * hidden * (hidden + keys) + hidden * experts;
  CHECK(casts == cast * (2 * weights + (4 + 5) * read));
}
