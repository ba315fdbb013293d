// Megatron-Core's tensors against those that its own code allocates: Megatron-LM @d98e8a64dd with
// Transformer Engine @d0067d0da, run without kernels on one rank. cuBLAS workspaces are not seen.
#include <algorithm>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/program/footprint.hpp"
#include "cost_model/runtime/megatron/ends.hpp"
#include "cost_model/runtime/megatron/stage.hpp"
#include "cost_model/states/buffers.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Problem cut(std::string_view model, std::int64_t layers, const Layout& layout) {
  Problem p = tests::problem(Runtime::megatron, model, layout, "H100-80GB");
  p.model.layers = layers;
  return p;
}

double allocated_mib(const Problem& p, std::size_t stage) {
  const Estimate e = estimate(p, Evaluator(p));
  return static_cast<double>(e.stages.at(stage).memory.allocated().count()) /
         static_cast<double>(mebi);
}

std::int64_t kept(const Problem& p, LayerKind kind) {
  return folded(megatron_layer(p, kind))->forward.left.allocated().count();
}

// Above what is live when the backward pass begins.
std::int64_t backward_peak(const FoldedBlock& block) {
  return block.backward_with(BackwardPart::whole, {}).peak.live.allocated().count();
}

// Of a layer, with what its forward pass keeps.
std::int64_t layer_peak(const Problem& p, LayerKind kind) {
  return kept(p, kind) + backward_peak(*folded(megatron_layer(p, kind)));
}

const ChunkProgram& only_chunk(const StageProgram& program) {
  return program.chunks.at(0);
}

std::int64_t mask_bytes(const Problem& p, std::size_t stage) {
  const StageProgram program = megatron_chunks(p, megatron_blocks(p), stages(p).at(stage));
  return only_chunk(program).batch.bytes.count();
}

}  // namespace

// 9,853.37 with keys and values of their own heads: 8 layers x 2 x (4 - 1) MiB less.
TEST_CASE("attention that is not fused keeps keys and values for every query head") {
  Problem p = cut("llama3-8b", 8,
                  {.dp = 2, .tp = 4, .zero = ZeroStage::optimizer, .sequence_parallel = true});
  p.training.sequence_length = 2048;
  const std::int64_t fused = kept(p, LayerKind::dense);
  p.training.attention = AttentionKernel::unfused;
  constexpr double cublas = 64;
  REQUIRE(allocated_mib(p, 0) == Approx(9'901.46 + cublas).margin(0.3));

  // Inside its checkpoint they are made again; fused attention has a log-sum-exp instead. Values
  // are a view of the projection's output, which so stays with its queries and keys.
  p.layout.recompute = Recompute::selective;
  p.runtime.megatron.recompute_modules = bit_of(RecomputeModule::core_attn);
  constexpr std::int64_t queries_and_keys = 2 * (32 + 8) / 4 * 128 * 2048;
  REQUIRE(kept(p, LayerKind::dense) == fused - 4 * 32 / 4 * 2048 + queries_and_keys);
}

// The run's batches were one tensor, whose mask stayed; else it is gone in the backward pass, where
// the first stage's peak is.
TEST_CASE("only the ends of a pipeline hold attention masks") {
  Problem p = cut("llama3-70b", 8,
                  {.tp = 8, .pp = 4, .zero = ZeroStage::optimizer, .sequence_parallel = true});
  p.training.global_batch = 6;
  constexpr double mask_of_the_batch = 16;
  REQUIRE(allocated_mib(p, 0) == Approx(7'383.81 - mask_of_the_batch).margin(0.2));
  REQUIRE(allocated_mib(p, 1) == Approx(4'839.35).margin(0.2));

  constexpr std::int64_t whole = 4096 * 4096;
  REQUIRE(mask_bytes(p, 3) == whole);
  REQUIRE(mask_bytes(p, 2) == 0);
}

TEST_CASE("context parallelism leaves a rank the rows of the mask that its tokens have") {
  const std::int64_t length = 4096;
  CHECK(mask_bytes(cut("llama3-8b", 4, {.cp = 4}), 0) == length * length / 4);
  CHECK(mask_bytes(cut("llama3-8b", 4, {.cp = 1}), 0) == length * length);
}

// 7.53 GiB traced of 4 layers in fp32, of which placeholders of 16 bits would be 5.4 % less.
TEST_CASE("placeholder gradients are as wide as the weights they stand for") {
  const auto placeholders = [](Precision precision) {
    Problem p = cut("llama3-8b", 4, {.tp = 4});
    p.training.precision = precision;
    for (const Workspace& w : workspaces(p, weight_inventory(p.model), stages(p).front())) {
      if (w.name.starts_with("placeholder")) return w.bytes.count();
    }
    return std::int64_t{0};
  };
  constexpr std::int64_t elements = 4096 * (32'128 + 1024 + 1536 + 3 * 3584);
  CHECK(placeholders(Precision::bf16) == 2 * elements);
  CHECK(placeholders(Precision::fp32) == 4 * elements);
}

// Of Qwen3 30B 32 + 4 heads of 128 features, and not once more its values: 16 MiB in 4 layers.
TEST_CASE("norms of queries and keys keep copies of these, not the whole projection") {
  Problem p = cut("qwen3-30b-a3b", 4, {.dp = 8, .ep = 8, .zero = ZeroStage::optimizer});
  const std::int64_t normed = kept(p, LayerKind::moe);
  p.model.attention.qk_norm = false;
  const std::int64_t features = 2 * (32 + 4) * 128;
  const std::int64_t statistics = 4 * (32 + 4);
  REQUIRE(normed - kept(p, LayerKind::moe) == (features + statistics) * 4096);
}

// Mixtral's: 2 x 8,192 routed tokens x 14,336.
TEST_CASE("a recomputed expert activation lives until the gradient of fc1's output is made") {
  Problem p = cut("mixtral-8x7b", 4, {.dp = 8, .ep = 4, .zero = ZeroStage::optimizer});
  const std::int64_t whole = layer_peak(p, LayerKind::moe);
  p.layout.recompute = Recompute::selective;
  p.runtime.megatron.recompute_modules = bit_of(RecomputeModule::moe_act);
  REQUIRE(layer_peak(p, LayerKind::moe) - whole == 2 * 8192 * 14'336);
}

// The divided one, which is there when the pass begins, is gone.
TEST_CASE("the embedding table's gradient lives beside one gathered gradient") {
  const Problem p = cut("llama3-8b", 4, {.tp = 2, .sequence_parallel = true});
  const std::int64_t gathered = 2 * 4096 * 4096;
  const std::int64_t table = 2 * word_embedding(p).elements();
  REQUIRE(backward_peak(*folded(megatron_embedding(p))) == gathered / 2 + table);
}

// 8,089,204,736 bytes traced of the whole rank; a copy beside the logits would be 263 MB more.
TEST_CASE("the loss of fp32 logits works in them") {
  Problem p = cut("llama3-8b", 4,
                  {.dp = 2, .tp = 4, .zero = ZeroStage::optimizer, .sequence_parallel = true});
  p.training.precision = Precision::fp32;
  p.training.attention = AttentionKernel::unfused;
  p.training.sequence_length = 2048;
  constexpr double cublas = 64;
  REQUIRE(allocated_mib(p, 0) - cublas == Approx(7'714.5).epsilon(0.004));
}
