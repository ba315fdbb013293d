#include "cost_model/states/model_states.hpp"

#include <random>
#include <tuple>

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

// Of the stage that holds most.
ModelStates states(const Problem& p) {
  const WeightInventory inventory = weight_inventory(p.model);
  ModelStates most;
  for (const Stage& stage : stages(p)) {
    const ModelStates s = model_states(p, inventory, stage);
    if (s.total() > most.total()) most = s;
  }
  return most;
}

// The ZeRO paper speaks of sizes, not shapes.
Problem paper(double billions, std::int64_t dp, int stage) {
  ModelSpec model{
      .name = "size", .hidden_size = 1, .vocab_size = static_cast<std::int64_t>(billions * 1e9)};
  model.tied_embeddings = true;
  model.final_norm = false;
  model.attention = {.heads = 1, .kv_heads = 1};
  Problem p{.model = model, .runtime = load_runtime(Runtime::zero_paper, {})};
  p.layout = {.dp = dp, .zero = static_cast<ZeroStage>(stage)};
  return p;
}

double gigabytes(Bytes bytes) {
  return static_cast<double>(bytes.count()) / 1e9;
}

}  // namespace

// Rajbhandari et al., arXiv 1910.02054v3, Figure 1: 7.5B parameters, N_d 64, K 12.
TEST_CASE("ZeRO Figure 1") {
  REQUIRE(gigabytes(states(paper(7.5, 64, 0)).total()) == Approx(120));
  REQUIRE(gigabytes(states(paper(7.5, 64, 1)).total()) == Approx(31.40625));
  REQUIRE(gigabytes(states(paper(7.5, 64, 2)).total()) == Approx(16.640625));
  REQUIRE(gigabytes(states(paper(7.5, 64, 3)).total()) == Approx(1.875));
}

// The same, Table 1, all 54 cells. The paper rounds some cells and truncates others (4187.5 is
// printed 4187), so a cell agrees when it differs by less than one unit of its last printed digit.
TEST_CASE("ZeRO Table 1") {
  struct Cell {
    double value, unit;
  };
  struct Row {
    std::int64_t dp;
    Cell size[3][3];
  };
  const Row rows[] = {
      {1,
       {{{120, 1}, {120, 1}, {120, 1}},
        {{2048, 1}, {2048, 1}, {2048, 1}},
        {{16000, 1}, {16000, 1}, {16000, 1}}}},
      {4,
       {{{52.5, .1}, {41.3, .1}, {30, 1}},
        {{896, 1}, {704, 1}, {512, 1}},
        {{7000, 1}, {5500, 1}, {4000, 1}}}},
      {16,
       {{{35.6, .1}, {21.6, .1}, {7.5, .1}},
        {{608, 1}, {368, 1}, {128, 1}},
        {{4750, 1}, {2875, 1}, {1000, 1}}}},
      {64,
       {{{31.4, .1}, {16.6, .1}, {1.88, .01}},
        {{536, 1}, {284, 1}, {32, 1}},
        {{4187, 1}, {2218, 1}, {250, 1}}}},
      {256,
       {{{30.4, .1}, {15.4, .1}, {0.47, .01}},
        {{518, 1}, {263, 1}, {8, 1}},
        {{4046, 1}, {2054, 1}, {62.5, .1}}}},
      {1024,
       {{{30.1, .1}, {15.1, .1}, {0.12, .01}},
        {{513, 1}, {257, 1}, {2, 1}},
        {{4011, 1}, {2013, 1}, {15.6, .1}}}},
  };
  const double sizes[] = {7.5, 128, 1000};
  int cells = 0;
  for (const Row& row : rows) {
    for (int size = 0; size < 3; ++size) {
      for (int stage = 1; stage <= 3; ++stage) {
        const auto [value, unit] = row.size[size][stage - 1];
        CAPTURE(row.dp, sizes[size], stage, value);
        REQUIRE(std::abs(gigabytes(states(paper(sizes[size], row.dp, stage)).total()) - value) <
                unit);
        ++cells;
      }
    }
  }
  REQUIRE(cells == 54);
}

// The same, Table 2, theory: what 32e9 bytes hold at N_d 64 with model parallelism 1 to 16. Printed
// is the rounded figure for 1, times the degree.
TEST_CASE("ZeRO Table 2, theory") {
  const double printed[] = {2e9, 7.6e9, 14.4e9, 128e9};
  for (const std::int64_t mp : {1, 2, 4, 8, 16}) {
    for (int stage = 0; stage <= 3; ++stage) {
      CAPTURE(mp, stage);
      const double size = printed[stage] * static_cast<double>(mp);
      const auto needed = [&](double parameters) {
        Problem p = paper(parameters / 1e9, 64, stage);
        p.layout.tp = mp;
        return gigabytes(states(p).total());
      };
      REQUIRE(needed(size * 0.994) <= 32);
      REQUIRE(needed(size * 1.007) > 32);
    }
  }
}

// Megatron-LM docs/user-guide/features/dist_optimizer.md: bf16 with fp32 gradients, 6 + 12/d.
TEST_CASE("Megatron keeps fp32 gradients whole") {
  const Problem p =
      problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer});
  const auto elements = static_cast<double>(states(p).parameters.count() / 2);
  REQUIRE(static_cast<double>(states(p).total().count()) / elements == Approx(7.5));
  REQUIRE(states(p).gradients == 2 * states(p).parameters);
}

// training/arguments.py turns accumulate_allreduce_grads_in_fp32 on with bf16, which Megatron-FSDP
// took for its main gradients until Megatron-Core 0.17 (core/distributed/fsdp).
TEST_CASE("Megatron-FSDP divides gradients in the format that its release has them in") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  REQUIRE(states(p).gradients == states(p).parameters);
  p.runtime.megatron.megatron_core = 16;
  REQUIRE(states(p).gradients == 2 * states(p).parameters);
  p.runtime.megatron.grad_reduce_in_bf16 = true;
  REQUIRE(states(p).gradients == states(p).parameters);
}

// Transformer Engine's runtime pads: 50,257 words over tp 8 become 51,200.
TEST_CASE("Megatron pads the vocabulary to 128 x tp") {
  const Problem p = problem(Runtime::megatron, "gpt3-175b", {.tp = 8});
  const Weight words = embedding_weights(p.model).front();
  REQUIRE(local_weight(words, p).rows * 8 == 51'200);
}

TEST_CASE("experts shard over their own group") {
  // Megatron-Core MoE report, Table 3: DeepSeek-V3 on 256 GPUs, PP 4, EP 64: dense width 64,
  // expert 1.
  Problem p = problem(Runtime::megatron, "deepseek-v3",
                      {.dp = 64, .pp = 4, .ep = 64, .zero = ZeroStage::optimizer});
  REQUIRE(shard_widths(p).dense == 64);
  REQUIRE(shard_widths(p).expert == 1);
  p.layout.etp = 1;
  p.layout.tp = 2;
  p.layout.dp = 32;
  REQUIRE(shard_widths(p).expert == 1);  // tensor-parallel ranks hold whole experts
}

TEST_CASE("the last stage has its own copy of a tied embedding") {
  const Problem p = problem(Runtime::megatron, "gpt2-xl", {.pp = 2});
  const WeightInventory inventory = weight_inventory(p.model);
  const auto all = stages(p);
  const std::int64_t words = 50'304 * 1600;  // padded
  const std::int64_t first = stage_elements(p, inventory, all[0], Padding::none).full();
  const std::int64_t last = stage_elements(p, inventory, all[1], Padding::none).full();
  // First: words and 1024 positions. Last: words and the final norm.
  REQUIRE(first - last == (words + 1024 * 1600) - (words + 2 * 1600));
}

TEST_CASE("FSDP2 shards whole rows, DeepSpeed 3 single elements, DeepSpeed 2 the flat group") {
  const WeightInventory inventory = weight_inventory(find_model("gpt2").spec);
  Problem p = problem(Runtime::fsdp2, "gpt2", {.dp = 48});
  const Stage whole = stages(p).front();
  const std::int64_t parameters = elements(inventory.embedding) +
                                  12 * elements(inventory.layer(LayerKind::dense)) +
                                  elements(inventory.head);
  const auto shard = [&](Padding padding) {
    return stage_elements(p, inventory, whole, padding).shard();
  };
  // 50,257 rows over 48 ranks are 1,048 each, of 768 columns.
  REQUIRE(shard(Padding::first_dimension) > shard(Padding::each_tensor));
  REQUIRE(shard(Padding::each_tensor) >= ceil_div(parameters, 48));
  REQUIRE(shard(Padding::flat_group) == round_up(parameters, 96) / 48);
}

TEST_CASE("optimizers keep what they keep") {
  Problem p = problem(Runtime::zero_paper, "llama3-8b", {});
  const double n = 8'030'261'248;
  const auto per_parameter = [&](OptimizerKind kind) {
    p.training.optimizer = kind;
    return static_cast<double>(states(p).optimizer_states.count()) / n;
  };
  REQUIRE(per_parameter(OptimizerKind::adam) == Approx(8));
  REQUIRE(per_parameter(OptimizerKind::sgd) == Approx(4));
  REQUIRE(per_parameter(OptimizerKind::adam8bit) == Approx(2 + 8.0 / 256));
  // 6,979,321,856 parameters in matrices of the layers; embedding and head keep both moments.
  REQUIRE(per_parameter(OptimizerKind::muon) == Approx(8 - 4 * 6'979'321'856 / n));
}

TEST_CASE("weights of layers are hidden, whatever the layer, and those of the ends are not") {
  const WeightInventory all = weight_inventory(find_model("deepseek-v3").spec);
  for (const auto* layer : {&all.layer(LayerKind::dense), &all.layer(LayerKind::moe), &all.mtp}) {
    CHECK(of_hidden_layer(all, *layer));
  }
  for (const auto* end : {&all.embedding, &all.head, &all.mtp_embedding, &all.tied_head}) {
    CHECK_FALSE(of_hidden_layer(all, *end));
  }
}

TEST_CASE("an update rewrites what the optimizer keeps") {
  const StateRecipe recipe{.master_bytes = 4, .first_moment_bytes = 4, .second_moment_bytes = 4};
  const auto rewritten = [&](OptimizerKind kind) {
    return rewritten_states(kind, recipe, 512, 256);
  };
  REQUIRE(rewritten(OptimizerKind::adam) == Bytes{2 * 512 * (4 + 4 + 4)});
  REQUIRE(rewritten(OptimizerKind::sgd) == Bytes{2 * 512 * (4 + 4)});
  REQUIRE(rewritten(OptimizerKind::adam8bit) == Bytes{2 * (512 * (2 + 4) + 2 * 8)});
  REQUIRE(rewritten(OptimizerKind::muon) == Bytes{2 * (512 * (4 + 4) + 256 * 4)});
}

TEST_CASE("offload takes the optimizer off the GPU") {
  Problem p = problem(Runtime::deepspeed, "llama3-8b",
                      {.dp = 8, .zero = ZeroStage::gradients, .offload = Offload::optimizer});
  REQUIRE(states(p).optimizer_states == Bytes{});
  REQUIRE(states(p).gradients == Bytes{});
  REQUIRE(states(p).parameters > Bytes{});
  p = problem(Runtime::megatron, "llama3-8b",
              {.dp = 8, .zero = ZeroStage::optimizer, .offload = Offload::optimizer});
  REQUIRE(states(p).gradients > Bytes{});  // reduced in its buffer on the GPU
}

// Padding is the only thing that may grow: at most one row or alignment unit a tensor.
TEST_CASE("states never grow with the ZeRO stage or with more shards") {
  std::mt19937 random(7);
  const std::string_view models[] = {"llama3-8b", "mixtral-8x7b", "gpt2-xl", "deepseek-v2-lite",
                                     "gemma2-9b"};
  for (int i = 0; i < 200; ++i) {
    const auto runtime = static_cast<Runtime>(std::uniform_int_distribution(0, 5)(random));
    const auto pick = [&](std::initializer_list<std::int64_t> list) {
      return *(list.begin() +
               std::uniform_int_distribution<long>(0, static_cast<long>(list.size()) - 1)(random));
    };
    Layout layout{.dp = pick({1, 2, 4, 8, 64}), .tp = pick({1, 2, 4}), .pp = pick({1, 2, 4})};
    Problem p = problem(runtime, models[i % 5], layout);
    if (p.model.moe) p.layout.ep = std::min<std::int64_t>(layout.dp, 8);
    if (chunk_sizes(p).empty()) continue;
    CAPTURE(name_of(runtime), p.model.name, layout.dp, layout.tp, layout.pp);
    // Bytes of padding; the smallest rank holds hundreds of megabytes. zeroplan aligns the part of
    // each rank in each unit.
    const std::int64_t slack = runtime == Runtime::zeroplan ? 30'000'000 : 2'000'000;
    std::optional<ModelStates> before;
    for (const ZeroStage stage :
         {ZeroStage::none, ZeroStage::optimizer, ZeroStage::gradients, ZeroStage::parameters}) {
      p.layout.zero = stage;
      const ModelStates now = states(p);
      if (before) REQUIRE(now.total().count() <= before->total().count() + slack);
      before = now;
      Problem wider = p;
      wider.layout.dp *= 2;
      REQUIRE(states(wider).total().count() <= now.total().count() + slack);
    }
  }
}

TEST_CASE("shards of all ranks hold every parameter, and little more") {
  for (const Padding padding :
       {Padding::none, Padding::aligned_buffer, Padding::flat_group, Padding::each_tensor,
        Padding::first_dimension, Padding::each_unit}) {
    const Problem p = problem(Runtime::zero_paper, "llama3-8b", {.dp = 24});
    const WeightInventory inventory = weight_inventory(p.model);
    const StageElements e = stage_elements(p, inventory, stages(p).front(), padding);
    CAPTURE(static_cast<int>(padding));
    REQUIRE(e.shard() * 24 >= 8'030'261'248);
    REQUIRE(static_cast<double>(e.shard()) * 24 / 8'030'261'248.0 < 1.01);
  }
}
