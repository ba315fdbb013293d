// State spaces as Transformers' classes ran on fake tensors, with the Python of mamba_ssm and
// causal-conv1d: MiB allocated at the peak, but for workspaces, and the tensors of a layer.
#include "tests/catch.hpp"
#include "tests/cost_model/runtime/pytorch_layers/huggingface.hpp"
#include "tests/tracked.hpp"

using namespace zeroplan;
using tests::problem_of;
using tests::Tracked;

namespace {

constexpr std::int64_t tokens = 4'096;

// Of layer `layer`, one sample of 4,096 tokens.
Block layer_of(Runtime runtime, std::string_view model, std::int64_t layer) {
  const Problem p = problem_of({runtime, model, 8, 8, tokens, 1, Recompute::none, 0});
  return code_of(p).block(p, weight_inventory(p.model), BlockKind::layer, kind_of(p.model, layer),
                          0);
}

std::int64_t bytes_of(const Block& block, std::string_view name) {
  const auto found = std::ranges::find(block.tensors, name, &TensorSpec::name);
  CAPTURE(name);
  REQUIRE(found != block.tensors.end());
  return found->bytes.count();
}

bool has(const Block& block, std::string_view name) {
  return std::ranges::find(block.tensors, name, &TensorSpec::name) != block.tensors.end();
}

// What a forward pass leaves for the backward pass, beside its output, a token.
std::int64_t kept(const Block& block) {
  std::int64_t sum = 0;
  for (const Event& event : block.forward) {
    if (!event.is_of_tensor()) continue;
    if (event.index == Block::input || event.index == Block::output) continue;
    const std::int64_t bytes = block.tensors[static_cast<std::size_t>(event.index)].bytes.count();
    sum += event.allocates() ? bytes : -bytes;
  }
  return sum / tokens;
}

}  // namespace

// Bytes a token, recorded operator by operator: 128 heads of 64, 8,448 channels, a state of 128,
// chunks of 256 tokens.
TEST_CASE("a mixer keeps its projection and what the scan gave, and makes the rest again") {
  Problem p = problem_of({Runtime::fsdp2, "bamba-9b", 32, 8, tokens, 1, Recompute::none, 0});
  const Block bamba =
      code_of(p).block(p, weight_inventory(p.model), BlockKind::layer, LayerKind::linear_dense, 0);
  CHECK(bytes_of(bamba, "gate, features and time steps") == 33'536 * tokens);
  CHECK(bytes_of(bamba, "convolved") == 16'896 * tokens);
  CHECK(bytes_of(bamba, "decay summed by chunk") == 512 * tokens);
  CHECK(bytes_of(bamba, "states of chunks in fp32") == 16'384 * tokens);
  CHECK(bytes_of(bamba, "states that chunks begin with") == 8'192 * tokens);
  CHECK(bytes_of(bamba, "last states") == 1'024 * tokens);
  CHECK(bytes_of(bamba, "pairs of a chunk") == 1'024 * tokens);
  CHECK(bytes_of(bamba, "output of the scan") == 16'384 * tokens);
  CHECK(bytes_of(bamba, "norm weight gradient in parts") == 1'056 * tokens);
  CHECK(bytes_of(bamba, "gradient of what is written, in parts") == 4'096 * tokens);
  CHECK(bytes_of(bamba, "gradient of pairs, in parts") == 8'192 * tokens);
  CHECK(bytes_of(bamba, "decay gradient within chunks, in parts") == 4'096 * tokens);
  // A chunk that is not full takes as much, and states are each sample's.
  p.training.sequence_length = 1'000;
  p.layout.micro_batch = 3;
  const Block odd =
      code_of(p).block(p, weight_inventory(p.model), BlockKind::layer, LayerKind::linear_dense, 0);
  CHECK(bytes_of(odd, "decay summed by chunk") == std::int64_t{4} * 128 * 3 * 4 * 256);
  CHECK(bytes_of(odd, "last states") == std::int64_t{4} * 8'192 * 128 * 3);
}

// An MLP of 21,504 without a gate: what its product reads, and ReLU squared's own.
TEST_CASE("a layer of one half keeps that half's tensors and one norm's") {
  const Block mixer = layer_of(Runtime::fsdp2, "nemotron-h-8b", 0);
  const Block mlp = layer_of(Runtime::fsdp2, "nemotron-h-8b", 1);
  const Block attention = layer_of(Runtime::fsdp2, "nemotron-h-8b", 7);
  // fp32 input of the norm and a statistic, what it weighed in fp32, what the linears read.
  const std::int64_t norm = 4 * 4'096 + 4;
  const std::int64_t weighed = kept(mlp) - norm - 2 * 4'096 - 2 * 2 * 21'504;
  CHECK(weighed == 4 * 4'096);
  // 8 groups' statistics.
  CHECK(kept(mixer) == norm + weighed + 2 * 4'096 + 2 * (8'192 + 10'240 + 128) + 2 * 8'192 + 4 * 8);
  CHECK(has(mixer, "output of the scan"));
  CHECK_FALSE(has(mixer, "attention residual"));
  CHECK_FALSE(has(mlp, "output of the scan"));
  CHECK_FALSE(has(attention, "rotated queries"));
  CHECK(kept(attention) > kept(mlp) - 2 * 2 * 21'504);
}

// Under autocast the gradient that comes in is narrowed, and stays as long as the mixer's others.
TEST_CASE("autocast narrows the gradient that a mixer is given") {
  CHECK(bytes_of(layer_of(Runtime::ddp, "nemotron-h-8b", 0), "16-bit output gradient") ==
        2 * 4'096 * tokens);
  CHECK_FALSE(has(layer_of(Runtime::fsdp2, "nemotron-h-8b", 0), "16-bit output gradient"));
}

TEST_CASE("a layer of one half has one norm's gradient") {
  constexpr std::int64_t norm = 2 * 4'096;
  CHECK(bytes_of(layer_of(Runtime::ddp, "nemotron-h-8b", 0), "norm") == norm);
  CHECK(bytes_of(layer_of(Runtime::ddp, "nemotron-h-8b", 1), "norm") == norm);
  CHECK(bytes_of(layer_of(Runtime::ddp, "bamba-9b", 0), "norm") == 2 * norm);
}
