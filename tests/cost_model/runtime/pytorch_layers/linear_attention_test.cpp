// Linear attention as Transformers' classes ran on fake tensors, with the Python of
// flash-linear-attention and causal-conv1d: MiB allocated at the peak, but for workspaces, and the
// tensors of a layer.
#include "cost_model/kernel/layer_traffic.hpp"
#include "cost_model/kernel/spelt_traffic.hpp"
#include "cost_model/runtime/deepspeed/gradients.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/runtime/pytorch_layers/huggingface.hpp"
#include "tests/tracked.hpp"

using namespace zeroplan;
using tests::problem_of;
using tests::Tracked;
using tests::tracked_mib;

namespace {

constexpr std::int64_t tokens = 2 * 1'000;

// Of the first layer, two samples of 1,000 tokens.
Block linear_layer(Runtime runtime, std::string_view model) {
  const Problem p = problem_of({runtime, model, 4, 8, 1'000, 2, Recompute::none, 0});
  return code_of(p).block(p, weight_inventory(p.model), BlockKind::layer, kind_of(p.model, 0), 0);
}

std::int64_t bytes_of(const Block& block, std::string_view name) {
  const auto found = std::ranges::find(block.tensors, name, &TensorSpec::name);
  REQUIRE(found != block.tensors.end());
  return found->bytes.count();
}

}  // namespace

TEST_CASE("layers with linear attention and gated ones need what Transformers' do") {
  using enum Recompute;
  const Tracked run =
      GENERATE(Tracked{Runtime::fsdp2, "qwen3.5-9b", 4, 8, 4096, 1, none, 22'345.6},
               Tracked{Runtime::fsdp2, "qwen3.5-9b", 8, 8, 4096, 1, full, 19'381.9},
               Tracked{Runtime::fsdp2, "qwen3-next-80b-a3b", 4, 64, 4096, 1, none, 17'199.9},
               Tracked{Runtime::fsdp2, "qwen3-next-80b-a3b", 8, 64, 4096, 1, full, 16'681.7},
               Tracked{Runtime::fsdp2, "qwen3.5-35b-a3b", 4, 32, 4096, 1, none, 18'200.0},
               Tracked{Runtime::ddp, "qwen3.5-9b", 4, 8, 2048, 1, none, 56'245.3},
               Tracked{Runtime::ddp, "qwen3-next-80b-a3b", 4, 8, 1024, 2, none, 137'536.0});
  CAPTURE(name_of(run.runtime), run.model, run.layers);
  Problem p = problem_of(run);
  p.runtime.fsdp2.torch_version = 215;
  CHECK(tracked_mib(p) == Approx(run.mib).epsilon(0.0004));
}

// 16 heads of queries and keys and 32 of values, 128 values each; chunks of 64 tokens, 16 of each
// sample.
TEST_CASE("a layer with linear attention has its heads' tensors, each chunk's and each token's") {
  const Block apart = linear_layer(Runtime::fsdp2, "qwen3.5-9b");
  const std::int64_t mixed = 2 * tokens * 8'192, values = 2 * tokens * 4'096;
  CHECK(bytes_of(apart, "queries, keys and values") == mixed);
  CHECK(bytes_of(apart, "convolved") == mixed);
  CHECK(bytes_of(apart, "gate") == values);
  CHECK(bytes_of(apart, "writing rate") == 2 * tokens * 32);
  CHECK(bytes_of(apart, "shifted decay") == 4 * tokens * 32);
  CHECK(bytes_of(apart, "normalised keys") == 2 * tokens * 2'048);
  CHECK(bytes_of(apart, "keys as written") == 2 * tokens * 4'096);
  CHECK(bytes_of(apart, "inverses of chunks") == 2 * tokens * 32 * 64);
  CHECK(bytes_of(apart, "states of chunks") == std::int64_t{2} * 2 * 16 * 32 * 128 * 128);
  CHECK(bytes_of(apart, "normalised and weighed") == values);
  CHECK(bytes_of(apart, "gate in fp32") == 2 * values);
  const Block joined = linear_layer(Runtime::fsdp2, "qwen3-next-80b-a3b");
  CHECK(bytes_of(joined, "queries, keys, values and gate") == mixed + values);
  CHECK(bytes_of(joined, "writing rate and decay") == 2 * tokens * 2 * 32);
  CHECK(bytes_of(joined, "gradient of all four") == mixed + values);
  // A weight of fp32 widens what it weighs.
  const Block wide = linear_layer(Runtime::ddp, "qwen3.5-9b");
  CHECK(bytes_of(wide, "normalised and weighed") == 2 * values);
}

TEST_CASE("an output gate is copied, and its sigmoid weighs what attention gives") {
  const Problem p = problem_of({Runtime::fsdp2, "qwen3.5-9b", 4, 8, 1'000, 2, Recompute::none, 0});
  const std::int64_t output = 2 * tokens * 4'096;
  std::int64_t forward = 0, backward = 0;
  for (const Traffic& t : layer_traffic(p, LayerKind::dense)) {
    if (t.module != Module::core_attention) continue;
    forward += t.forward.count();
    backward += t.backward.count();
  }
  CHECK(forward == (2 + 2 + 3) * output);
  CHECK(backward == (3 + 3 + 3 + 4) * output);
}

// Out of the layer first, then into it; both after what is no matrix.
TEST_CASE("DeepSpeed knows the weights of linear attention in their class's order") {
  const auto sizes = [](std::string_view model) {
    const Problem p = problem_of({Runtime::deepspeed, model, 1, 8, 1'000, 1, Recompute::none, 0});
    return tensor_sizes(p, weight_inventory(p.model), stages(p).front());
  };
  const std::vector<std::int64_t> own = sizes("qwen3.5-9b");
  const std::vector<std::int64_t> first{248'320 * 4'096LL, 4'096,         4'096,        32, 32,
                                        4 * 8'192,         4'096 * 4'096, 8'192 * 4'096};
  REQUIRE(own.size() > first.size());
  CHECK(std::vector(own.begin(), own.begin() + std::ssize(first)) == first);
  const std::vector<std::int64_t> joined = sizes("qwen3-next-80b-a3b");
  CHECK(joined[6] == 12'288 * 2'048);
}
