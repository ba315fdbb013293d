// Every operation of the GPU against the host's, on the same random numbers.
#include "tests/gpu/both_devices.hpp"
#include "validator/cuda/plain_product.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;
using tests::BothDevices;

namespace {

// A few units in the last place of bf16: sums differ in their order.
constexpr double rounding = 0.02;

}  // namespace

TEST_CASE("a linear and its gradients, of any shape and at any alignment") {
  BothDevices both;
  const std::int64_t offset = GENERATE(0, 3, 8);
  const auto [tokens, in, out] =
      GENERATE(std::tuple<std::int64_t, std::int64_t, std::int64_t>{64, 128, 256},
               std::tuple<std::int64_t, std::int64_t, std::int64_t>{37, 48, 101});
  CAPTURE(offset, tokens, in, out);
  const auto x = both.halves(tokens, in, offset);
  const auto w = both.halves(out, in, offset);
  const auto y = both.halves(tokens, out, offset);
  const auto dx = both.halves(tokens, in, offset);
  const auto dw = both.halves(out, in, offset);
  both.run([&](Device& device, auto of) {
    device.linear_input_gradient(of(y), of(w), of(dx));
    device.linear_weight_gradient(of(y), of(x), of(dw));
    device.linear(of(x), of(w), of(y));
  });
  both.require_close(y, rounding);
  both.require_close(dx, rounding);
  both.require_close(dw, rounding);
}

TEST_CASE("our own product, which stands in for the library's, is the host's") {
  BothDevices both;
  const CudaStream stream;
  const auto x = both.halves(37, 48);
  const auto w = both.halves(101, 48);
  const auto y = both.halves(37, 101);
  const auto dx = both.halves(37, 48);
  const auto dw = both.halves(101, 48);
  both.run([&](Device& device, auto of) {
    if (of(x).data == x.host.data) {
      device.linear(of(x), of(w), of(y));
      device.linear_input_gradient(of(y), of(w), of(dx));
      device.linear_weight_gradient(of(y), of(x), of(dw));
      return;
    }
    multiply_plainly({of(x)}, {of(w), true}, of(y), false, stream);
    multiply_plainly({of(y)}, {of(w)}, of(dx), false, stream);
    multiply_plainly({of(y), true}, {of(x)}, of(dw), true, stream);
    stream.synchronize();
  });
  both.require_close(y, rounding);
  both.require_close(dx, rounding);
  both.require_close(dw, rounding);
}

TEST_CASE("what is added, copied and summed by column") {
  BothDevices both;
  const auto x = both.halves(37, 101);
  const auto y = both.halves(37, 101);
  const auto copied = both.halves(37, 101);
  const auto bias = both.halves(101, 1);
  const auto dbias = both.halves(101, 1);
  both.run([&](Device& device, auto of) {
    device.add(of(x), of(y));
    device.copy(of(copied), of(x));
    device.add_bias(of(x), of(bias));
    device.bias_gradient(of(x), of(dbias));
  });
  both.require_close(x, rounding);
  both.require_close(copied, rounding);
  both.require_close(dbias, rounding);
}

TEST_CASE("both norms and their gradients") {
  BothDevices both;
  const bool centred = GENERATE(false, true);
  const bool with_residual = GENERATE(false, true);
  CAPTURE(centred, with_residual);
  const auto x = both.halves(37, 331);
  const auto y = both.halves(37, 331);
  const auto dy = both.halves(37, 331);
  const auto dx = both.halves(37, 331);
  const auto residual = both.halves(37, 331);
  const auto weight = both.halves(331, 1);
  const auto bias = both.halves(331, 1);
  const auto dweight = both.halves(331, 1);
  const auto dbias = both.halves(331, 1);
  const auto statistics = both.numbers(37, centred ? 2 : 1);
  both.run([&](Device& device, auto of) {
    const NormWeights w{of(weight), centred ? of(bias) : Half{}};
    const NormWeights dw{of(dweight), centred ? of(dbias) : Half{}};
    device.norm(of(x), w, of(y), of(statistics));
    device.norm_gradient(of(dy), of(x), of(statistics), w,
                         with_residual ? ConstHalf(of(residual)) : ConstHalf{}, of(dx), dw);
  });
  both.require_close(y, rounding);
  both.require_close(statistics, 1e-3);
  both.require_close(dx, rounding);
  both.require_close(dweight, rounding);
  both.require_close(dbias, rounding);
}

TEST_CASE("rotation, there and back") {
  BothDevices both;
  const AttentionShape shape{
      .sequence = 19, .samples = 2, .heads = 4, .kv_heads = 2, .head_dim = 8};
  const auto qkv = both.halves(38, shape.row());
  const bool back = GENERATE(false, true);
  both.run([&](Device& device, auto of) { device.rotate(of(qkv), shape, back); });
  both.require_close(qkv, rounding);
}

TEST_CASE("attention and its gradient, heads shared and not, narrow and wide") {
  BothDevices both;
  const std::int64_t kv_heads = GENERATE(1, 2, 4);
  const std::int64_t head_dim = GENERATE(8, 80, 128, 256);
  const AttentionShape shape{
      .sequence = 70, .samples = 2, .heads = 4, .kv_heads = kv_heads, .head_dim = head_dim};
  CAPTURE(kv_heads, head_dim);
  const std::int64_t tokens = shape.sequence * shape.samples;
  const auto qkv = both.halves(tokens, shape.row());
  const auto dqkv = both.halves(tokens, shape.row());
  const auto y = both.halves(tokens, shape.query());
  const auto dy = both.halves(tokens, shape.query());
  const auto statistics = both.numbers(tokens, shape.heads);
  both.run([&](Device& device, auto of) {
    device.attention(of(qkv), shape, of(y), of(statistics));
    device.attention_gradient(of(dy), of(qkv), of(y), of(statistics), shape, of(dqkv));
  });
  both.require_close(y, rounding);
  both.require_close(statistics, 1e-3);
  both.require_close(dqkv, 2 * rounding);
}

TEST_CASE("both activations and their gradients") {
  BothDevices both;
  const std::int64_t parts = GENERATE(1, 2);
  const auto x = both.halves(37, parts * 101);
  const auto dx = both.halves(37, parts * 101);
  const auto y = both.halves(37, 101);
  const auto dy = both.halves(37, 101);
  both.run([&](Device& device, auto of) {
    device.activation(of(x), of(y));
    device.activation_gradient(of(dy), of(x), of(dx));
  });
  both.require_close(y, rounding);
  both.require_close(dx, rounding);
}

TEST_CASE("embedding and positions, with ids that repeat and ids of another rank") {
  BothDevices both;
  const VocabularyPart part{.first = 10, .rows = 20, .size = 30};
  const auto ids = both.ids(64, 40);
  const auto table = both.halves(20, 48);
  const auto dtable = both.halves(20, 48);
  const auto places = both.halves(32, 48);
  const auto dplaces = both.halves(32, 48);
  const auto y = both.halves(64, 48);
  const auto dy = both.halves(64, 48);
  both.run([&](Device& device, auto of) {
    device.embed(of(ids), of(table), part, of(y));
    device.add_positions(of(y).part(0, 27), 0, of(places), 32);
    device.add_positions(of(y).part(27, 37), 27, of(places), 32);
    device.embed_gradient(of(ids), of(dy), part, of(dtable));
    device.positions_gradient(of(dy), of(dplaces), 32);
  });
  both.require_close(y, rounding);
  both.require_close(dtable, rounding);
  both.require_close(dplaces, rounding);
}

TEST_CASE("the loss and its gradient over a padded part of the vocabulary") {
  BothDevices both;
  const VocabularyPart part{.first = 300, .rows = 300, .size = 571};
  const auto logits = both.halves(37, 300);
  const auto targets = both.ids(37, 571);
  const auto maximum = both.numbers(37, 1);
  const auto sum = both.numbers(37, 1);
  const auto target = both.numbers(37, 1);
  std::vector<double> losses;
  both.run([&](Device& device, auto of) {
    const LossSums sums{of(maximum), of(sum), of(target)};
    device.loss_maximum(of(logits), part, sums.maximum);
    device.loss_sums(of(logits), of(targets), part, sums);
    losses.push_back(device.loss_gradient(of(logits), of(targets), part, sums, 0.5F));
  });
  both.require_close(maximum, 1e-6);
  both.require_close(sum, 1e-3);
  both.require_close(target, 1e-6);
  both.require_close(logits, rounding);
  REQUIRE(losses.at(1) == Approx(losses.at(0)).epsilon(1e-4));
}

TEST_CASE("a step of Adam, and of nothing but zeros") {
  BothDevices both;
  const auto gradients = both.halves(1000, 1);
  const auto parameters = both.halves(1000, 1);
  const auto master = both.numbers(1000, 1);
  const auto first = both.numbers(1000, 1);
  const auto second = both.numbers(1000, 1);
  const auto cleared = both.numbers(1000, 1);
  both.run([&](Device& device, auto of) {
    device.adam(of(gradients), {.step = 3}, of(master), of(first), of(second), of(parameters));
    device.zero(of(cleared).data, 4000);
  });
  both.require_close(master, 1e-5);
  both.require_close(first, 1e-5);
  both.require_close(second, 1e-5);
  both.require_close(parameters, rounding);
  both.require_close(cleared, 0);
}
