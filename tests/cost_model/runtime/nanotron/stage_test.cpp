// nanotron's tensors against sums worked by hand.
#include "cost_model/runtime/nanotron/stage.hpp"

#include "cost_model/legality/legality.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/program/footprint.hpp"
#include "cost_model/program/play.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/question/runtime_code.hpp"
#include "cost_model/runtime/nanotron/code.hpp"
#include "cost_model/runtime/nanotron/layer.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

// Of huggingface/nanotron scripts/scaling_benchmarks.py @67c5ebb6: 3.57 and 8.86 billion.
Problem benchmark(std::int64_t layers,
                  std::int64_t hidden,
                  std::int64_t width,
                  const Layout& layout) {
  ModelSpec model{
      .name = "llama-like", .layers = layers, .hidden_size = hidden, .vocab_size = 131'072};
  model.attention = {.heads = 32, .kv_heads = 32, .head_dim = hidden / 32};
  model.mlp = {.intermediate_size = width, .gated = true};
  Problem p{.model = model,
            .cluster = cluster_of("H100-80GB", world_size(layout)),
            .runtime = load_runtime(Runtime::nanotron, {}),
            .training = {.sequence_length = 4096},
            .layout = layout};
  p.training.global_batch = layout.dp * layout.micro_batch * layout.pp;
  return p;
}

std::int64_t kept_a_token(const Problem& p) {
  const WeightInventory inventory = weight_inventory(p.model);
  const LayerShape s = layer_shape(p);
  BlockWriter w(s.residual(), s.residual());
  NanotronLayer layer(s, inventory.layer(LayerKind::dense));
  layer.forward(w);
  const Block block = w.finish();
  return fold(block, block.forward, Phase::forward).left.allocated().count() / local_tokens(p);
}

std::vector<std::int64_t> split(const Problem& p) {
  std::vector<std::int64_t> sizes;
  for (const Stage& stage : stages(p)) sizes.push_back(layer_count(stage));
  return sizes;
}

}  // namespace

TEST_CASE("a layer of nanotron keeps 20 h + 8 f + 4 n + 8 bytes a token without groups") {
  const std::int64_t h = 4096;
  const std::int64_t f = 14'336;
  Problem p = benchmark(32, h, f, {});
  // Its input counted as the output of the layer before.
  REQUIRE(kept_a_token(p) == 20 * h + 8 * f + 4 * 32 + 8);
  // With 8 groups queries are copied, and the projection's output goes.
  p.model.attention.kv_heads = 8;
  REQUIRE(kept_a_token(p) == 8 * h + 4 * h + 4 * 1024 + 8 * f + 4 * 32 + 8);
  // Of more than one sample the projection reads a transposed copy, which nothing keeps.
  p.layout.micro_batch = 2;
  REQUIRE(kept_a_token(p) == 8 * h + 4 * h + 4 * 1024 + 8 * f + 4 * 32 + 8);
}

TEST_CASE("since 2025-06 a layer of nanotron keeps its input in fp32 and views of one projection") {
  const std::int64_t h = 4096;
  const std::int64_t f = 14'336;
  Problem p = benchmark(32, h, f, {.micro_batch = 2});
  p.model.attention.kv_heads = 8;
  p.runtime.nanotron.version = NanotronVersion::of_2025_06;
  // fp32 input, what it is normalised to, the norm's output; the projection's output; attention's;
  // the residual and the second norm; and its own output in the place of its input.
  REQUIRE(kept_a_token(p) == 8 * h + (2 * h + 4 * 1024) + 2 * h + 4 * h + 8 * f + 4 * 32 + 8);
}

TEST_CASE("nanotron copies what the projection after attention reads, of several samples alone") {
  for (const std::int64_t samples : {1, 2}) {
    const Problem p = benchmark(2, 4096, 11'008, {.dp = 2, .micro_batch = samples});
    const Block block = code_of(p).block(p, weight_inventory(p.model), BlockKind::layer,
                                         LayerKind::dense, RepeatSet{});
    const auto copies = std::ranges::count(block.tensors, "projection input", &TensorSpec::name);
    CHECK((copies > 0) == (samples > 1));
  }
}

TEST_CASE("column-parallel linears of nanotron may keep what they gathered") {
  Problem p = benchmark(32, 4096, 14'336, {.tp = 2, .sequence_parallel = true});
  const std::int64_t gathers = kept_a_token(p);
  p.runtime.nanotron.tp_recompute_allgather = false;
  REQUIRE(kept_a_token(p) - gathers == 2 * (2 * 4096) - 2 * 4096);  // instead of half the tokens
}

TEST_CASE("a log of attention keeps what recompute would free, from micro-batch to micro-batch") {
  const auto highest = [](std::int64_t micro_batches, bool logs) {
    Problem p = benchmark(8, 4096, 14'336, {.recompute = Recompute::full});
    p.training.global_batch = micro_batches;
    p.runtime.nanotron.version = NanotronVersion::of_2025_06;
    p.runtime.nanotron.log_attn_probs = logs;
    const WeightInventory inventory = weight_inventory(p.model);
    const StageProgram program = nanotron_stage(p, inventory, stages(p).front());
    return fold_step(program, passes(p, 0, micro_batches)).live.allocated().count();
  };
  REQUIRE(highest(4, false) == highest(1, false));
  // Of each layer its input and that one's gradient, and two log-sum-exps of 32 heads.
  const std::int64_t tokens = 4096;
  REQUIRE(highest(4, true) - highest(1, true) == 3 * 8 * tokens * (2 * 2 * 4096 + 2 * 4 * 32));
}

TEST_CASE("nanotron says which models it has no class for, and what a log keeps") {
  const auto said = [](const Problem& p) { return (*nanotron_code.assumptions)(p); };
  Problem p = benchmark(8, 4096, 14'336, {.recompute = Recompute::full});
  REQUIRE(said(p).empty());
  p.model.attention.qkv_bias = true;  // Qwen2's, whose class came later
  REQUIRE(said(p).size() == 1);
  p.runtime.nanotron.version = NanotronVersion::of_2025_06;
  REQUIRE(said(p).size() == 1);
  REQUIRE(said(p).front().starts_with("log_attn_probs"));
  p.runtime.nanotron.log_attn_probs = false;
  REQUIRE(said(p).empty());
  p.model.attention.head_dim = 64;
  REQUIRE(said(p).size() == 1);
}

TEST_CASE("the last rank of nanotron may have the output layer alone") {
  Problem p = benchmark(8, 4096, 14'336, {.pp = 4});
  REQUIRE(split(p) == std::vector<std::int64_t>{3, 3, 2, 0});
  const WeightInventory inventory = weight_inventory(p.model);
  const StageProgram last = nanotron_stage(p, inventory, stages(p).back());
  REQUIRE(last.chunks.front().runs.size() == 1);
  const std::vector<Pass> order = passes(p, 3, micro_batches(p));
  Bytes resident;
  for (const TensorSpec& spec : last.resident) resident += spec.bytes;
  REQUIRE(play_step(last, order).left.allocated() == resident);
}

TEST_CASE("nanotron's states are 6 bytes a parameter and 12 divided, or 20 with DDP's buckets") {
  const auto resident = [](ZeroStage zero) {
    const Problem p = benchmark(28, 3072, 8192, {.dp = 4, .zero = zero});
    const WeightInventory inventory = weight_inventory(p.model);
    const StageProgram program = nanotron_stage(p, inventory, stages(p).front());
    double bytes = 0;
    for (const TensorSpec& spec : program.resident) {
      if (spec.category != Category::workspace) bytes += static_cast<double>(spec.bytes.count());
    }
    return bytes / static_cast<double>(parameter_count(p.model));
  };
  REQUIRE(resident(ZeroStage::optimizer) == Approx(6 + 12.0 / 4).epsilon(1e-6));
  REQUIRE(resident(ZeroStage::none) == Approx(20).epsilon(1e-6));
}

TEST_CASE("nanotron splits by matrix products, the output layer's among them") {
  REQUIRE(split(benchmark(28, 3072, 8192, {.pp = 2})) == std::vector<std::int64_t>{16, 12});
  REQUIRE(split(benchmark(32, 4096, 14'336, {.pp = 2})) == std::vector<std::int64_t>{18, 14});
}

TEST_CASE("nanotron divides the optimizer at most, and has no context parallelism") {
  const auto broken = [](const Layout& layout) {
    const auto violation = first_violation(benchmark(28, 3072, 8192, layout));
    return violation ? violation->rule : std::string_view{};
  };
  REQUIRE(broken({.dp = 8, .zero = ZeroStage::optimizer}).empty());
  REQUIRE(broken({.dp = 8, .zero = ZeroStage::gradients}) == "N-stage");
  REQUIRE(broken({.dp = 4, .cp = 2}) == "N-context");
}

TEST_CASE("the last rank of a tied model makes moments for its own copy of the table") {
  Problem p = benchmark(32, 4096, 14'336, {.dp = 2, .pp = 2});
  p.model.tied_embeddings = true;
  const WeightInventory inventory = weight_inventory(p.model);
  const Stage last = stages(p).back();
  const StageProgram program = nanotron_stage(p, inventory, last);
  Bytes moments;
  const auto list = nanotron_startup(p, inventory, last, program).moments;
  for (const TensorSpec& moment : list) moments += moment.bytes;
  const Bytes total = model_states(p, inventory, last).optimizer_states;
  REQUIRE(moments >= total);
  // Each is rounded up by the allocator.
  REQUIRE(moments < total + static_cast<std::int64_t>(list.size()) * Bytes{allocation_unit});
}
