// Megatron-Core's tensors against sums worked by hand and against measured runs.
#include "cost_model/runtime/megatron/stage.hpp"
#include "cost_model/answer/estimate.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

// What a layer keeps for its backward pass, its input counted as the output that the next one
// reads.
std::int64_t kept_a_token(const Problem& p, LayerKind kind = LayerKind::dense) {
  return folded(megatron_layer(p, kind))->forward.left.allocated().count() / local_tokens(p);
}

double allocated_mib(const Problem& p, std::size_t stage) {
  const Estimate e = estimate(p, Evaluator(p));
  return static_cast<double>(e.stages.at(stage).memory.allocated().count()) /
         static_cast<double>(mebi);
}

// Llama 3 70B cut to 12 layers on B200, as MooreThreads/SimuMax docs/b200 @4dcaae5 ran it.
Problem simumax(const Layout& layout, std::int64_t vocabulary) {
  Problem p = problem(Runtime::megatron, "llama3-70b", layout, "B200");
  p.model.layers = 12;
  p.model.vocab_size = vocabulary;  // as padded by that run's tokenizer
  MegatronSettings& set = p.runtime.megatron;
  set.make_vocab_size_divisible_by = 1;
  set.transformer_engine_version = 211;
  set.cross_entropy_loss_fusion = true;
  set.cross_entropy_fusion_impl = CrossEntropy::te;
  set.cublas_workspace_kib = 8320;
  set.create_attention_mask_in_dataloader = false;
  p.training.global_batch = layout.dp * 4;
  return p;
}

// GPT of 12 layers and 512 features, of Megatron-LM's functional tests.
Problem functional_test(const Layout& layout, std::string_view gpu) {
  ModelSpec model{.name = "gpt", .layers = 12, .hidden_size = 512, .vocab_size = 50'257};
  model.learned_positions = model.max_position_embeddings = 1024;
  model.attention = {
      .heads = 8, .kv_heads = 8, .head_dim = 64, .qkv_bias = true, .output_bias = true};
  model.mlp = {.intermediate_size = 2048, .bias = true};
  model.norm = Norm::layer;
  model.tied_embeddings = true;
  Problem p{
      .model = model,
      .cluster = cluster_of(gpu, world_size(layout)),
      .runtime = load_runtime(Runtime::megatron, {}),
      .training = {.sequence_length = 1024, .global_batch = layout.dp * layout.micro_batch * 8},
      .layout = layout};
  MegatronSettings& set = p.runtime.megatron;
  set.hidden_dropout = set.attention_dropout = 0.1;
  set.gradient_accumulation_fusion = false;
  set.cublas_workspace_kib = 32 * 1024;
  set.transformer_engine_version = 207;
  return p;
}

}  // namespace

TEST_CASE("a layer keeps its saved tensors") {
  // Norms 2 x (2 x 2h + 4) k; attention (4 n d + 4 n_kv d + 4 n) / t; gated MLP 6 f / t.
  REQUIRE(kept_a_token(problem(Runtime::megatron, "llama3-8b", {})) == 139'400);
  REQUIRE(kept_a_token(problem(Runtime::megatron, "llama3-70b", {})) == 274'696);
  REQUIRE(kept_a_token(problem(Runtime::megatron, "llama3-8b",
                               {.tp = 8, .sequence_parallel = true})) == 17'425);
  REQUIRE(kept_a_token(problem(Runtime::megatron, "llama3-70b",
                               {.tp = 8, .sequence_parallel = true})) == 34'337);
  REQUIRE(kept_a_token(problem(Runtime::megatron, "llama3-8b", {.tp = 8})) == 46'104);
}

TEST_CASE("GPT-3's layer with and without dropout") {
  Problem p = problem(Runtime::megatron, "gpt3-175b", {.tp = 8, .sequence_parallel = true});
  p.training.sequence_length = 2048;
  REQUIRE(kept_a_token(p) == 49'202);
  p.runtime.megatron.hidden_dropout = 0.1;
  REQUIRE(kept_a_token(p) == 52'274);
  p.layout.sequence_parallel = false;
  REQUIRE(kept_a_token(p) == 159'808);
  p.layout.tp = 1;
  REQUIRE(kept_a_token(p) == 418'192);
}

TEST_CASE("selective recompute of the MLP keeps its input alone") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.recompute = Recompute::selective});
  p.runtime.megatron.recompute_modules = bit_of(RecomputeModule::mlp);
  // Without norm output 2h, its statistics 4, and 6 f.
  REQUIRE(kept_a_token(p) == 139'400 - 2 * 4096 - 4 - 6 * 14'336);
}

// Real runs under Transformer Engine: llama3-8b's peak with recomputed norms is that without, Qwen3
// 30B's falls by one norm output a layer.
TEST_CASE("recompute of norms drops those that are modules of their own") {
  const auto dropped = [](Problem p, LayerKind kind, unsigned modules) {
    p.training.sequence_length = 4096;
    const std::int64_t whole = kept_a_token(p, kind);
    p.layout.recompute = Recompute::selective;
    p.runtime.megatron.recompute_modules = modules;
    return whole - kept_a_token(p, kind);
  };
  using enum RecomputeModule;
  Problem llama = problem(Runtime::megatron, "llama3-8b", {});
  const Problem qwen = problem(Runtime::megatron, "qwen3-30b-a3b", {.ep = 8});
  const Problem deepseek = problem(Runtime::megatron, "deepseek-v3", {.ep = 8});
  REQUIRE(dropped(llama, LayerKind::dense, bit_of(layernorm)) == 0);
  REQUIRE(dropped(qwen, LayerKind::moe, bit_of(layernorm)) == 2 * 2048);
  REQUIRE(dropped(deepseek, LayerKind::moe, bit_of(layernorm)) == 2 * 2 * 7168);
  REQUIRE(dropped(deepseek, LayerKind::dense, bit_of(layernorm)) == 2 * 7168);

  // Local layers have both; the MLP's checkpoint keeps the norm's output, which is its input.
  llama.runtime.megatron.transformer_engine_version = 0;
  REQUIRE(dropped(llama, LayerKind::dense, bit_of(layernorm)) == 2 * 2 * 4096);
  REQUIRE(dropped(llama, LayerKind::dense, bit_of(mlp)) == 6 * 14'336);
  REQUIRE(dropped(llama, LayerKind::dense, bit_of(mlp) | bit_of(layernorm)) ==
          2 * 2 * 4096 + 6 * 14'336);
}

TEST_CASE("dropout comes after the MLP's checkpoint") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.recompute = Recompute::selective});
  p.runtime.megatron.recompute_modules = bit_of(RecomputeModule::mlp);
  const std::int64_t without = kept_a_token(p);
  p.runtime.megatron.hidden_dropout = 0.1;
  REQUIRE(kept_a_token(p) == without + 2 * 4096);
}

TEST_CASE("selective recompute drops what the chosen modules of an expert layer make") {
  Problem p = problem(Runtime::megatron, "deepseek-v3", {.ep = 8});
  p.training.sequence_length = 4096;
  const std::int64_t whole = kept_a_token(p, LayerKind::moe);
  p.layout.recompute = Recompute::selective;
  const auto dropped = [&](std::initializer_list<RecomputeModule> modules) {
    p.runtime.megatron.recompute_modules = 0;
    for (const RecomputeModule m : modules) {
      p.runtime.megatron.recompute_modules |= 1U << static_cast<unsigned>(m);
    }
    return whole - kept_a_token(p, LayerKind::moe);
  };
  using enum RecomputeModule;
  // Queries and keys of 192, values of 128 features in 128 heads; both latents normalised, 8 bytes
  // of statistics; the key-value latent stays inside the down-projection's result, 64 wider.
  REQUIRE(dropped({mla_up_proj}) == 2 * (128 * (2 * 192 + 128) + 1536 + 512 - 64) + 8);
  REQUIRE(dropped({shared_experts}) == 2 * 3 * 2048);
  REQUIRE(dropped({moe_act}) == 2 * 8 * 2048);
  // A sigmoid's router, row map, what eight experts a token read and make, and the shared expert.
  const std::int64_t routing = 7 * 256 + 12 * 8 + 4 + 4 * (2 * 256 + 1);
  const std::int64_t experts = 8 * (2 * 7168 + 2 + 2 * 3 * 2048);
  REQUIRE(dropped({moe}) == routing + experts + 2 * 3 * 2048);
  REQUIRE(dropped({moe, moe_act, shared_experts}) == dropped({moe}));
}

TEST_CASE("full recompute keeps one input a layer") {
  const Problem p = problem(Runtime::megatron, "llama3-8b", {.recompute = Recompute::full});
  const auto block = folded(megatron_recomputed_layers(p, {LayerKind::dense}));
  REQUIRE(block->forward.left.allocated().count() == 2 * 4096 * 4096);
  // And builds the whole layer again.
  REQUIRE(block->backward_with(BackwardPart::whole, {}).peak.live.allocated().count() >
          139'400 * 4096);
}

// Measured 28,965.4 MiB. Parts: 18 bytes x 1,547,902,976; placeholders 204 + 252; workspaces 32
// + 16.25; rotary 2; gather buffer 64; 12 layers 1,609.55; final norm 16; logits 126; head's
// gradients 64 + 8.
TEST_CASE("70B cut to 12 layers at tp 8, peak at the head's backward pass") {
  const Problem p =
      simumax({.tp = 8, .zero = ZeroStage::optimizer, .sequence_parallel = true}, 129'024);
  REQUIRE(allocated_mib(p, 0) == Approx(28'965.4).margin(0.6));
  REQUIRE(estimate(p, Evaluator(p)).peak().phase == Phase::loss);
}

// Measured 68,146.3 MiB (ranks 2 and 3). The peak is the activation's backward pass of the last
// layer: states 53,091.8; placeholders 1,632; workspace 32; rotary 2; 12 layer-micro-batches
// 12,876.4; the activation's gradient takes its output's place 0; fc1's 448; received gradient 64.
TEST_CASE("the first of two stages, peak in the first layer of the backward pass") {
  const Problem p = simumax({.dp = 4, .pp = 2, .zero = ZeroStage::optimizer}, 128'384);
  REQUIRE(allocated_mib(p, 0) == Approx(68'146.3).margin(1.0));
  const Estimate e = estimate(p, Evaluator(p));
  REQUIRE(e.stages[0].phase == Phase::backward);
  REQUIRE(e.stages[0].tensor == "fc1 output gradient");
}

// Measured 4,456.6 MiB: 7.5 bytes x 64,109,568; workspaces 4 + 64; 12 layers 2,736.75 with 160 of
// scores each; embedding mask 2; final norm 8; 6 bytes a logit 1,179; attention mask 4.
TEST_CASE("unfused attention and loss on A100") {
  Problem p =
      functional_test({.dp = 8, .micro_batch = 4, .zero = ZeroStage::optimizer}, "A100-80GB");
  p.training.attention = AttentionKernel::unfused;
  REQUIRE(allocated_mib(p, 0) == Approx(4'456.6).margin(1.0));
}

// Measured 1,753.2 MiB; ten bytes a logit are 985 of it. With the vocabulary loss of six it would
// be 1,368.
TEST_CASE("the compiled loss holds ten bytes a logit") {
  Problem p = functional_test({.dp = 1, .tp = 2, .pp = 2, .micro_batch = 4}, "GB200");
  p.runtime.megatron.attention_backend = AttentionLibrary::flash;
  p.runtime.megatron.cross_entropy_loss_fusion = true;
  REQUIRE(allocated_mib(p, 1) == Approx(1'753.2).epsilon(0.008));
}

namespace {

Bytes kept_inputs(const Problem& p, std::size_t rank) {
  const Bytes hidden{2 * local_tokens(p) * p.model.hidden_size};
  const Bytes kept = megatron_kept_inputs(p, stages(p).at(rank), hidden);
  const StageProgram program = Evaluator(p).stage_program(p, stages(p).at(rank));
  CHECK(fold(program.step, program.step.forward, Phase::optimizer_step)
            .peak.live[Category::activations] == kept);
  REQUIRE(kept.count() % hidden.count() == 0);
  return Bytes{kept.count() / hidden.count()};
}

}  // namespace

// Each as traced (tests/reference/traced/megatron.jsonl): an input and its gradient.
TEST_CASE("what a stage received and what experts' checkpoints read stays through the step") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.pp = 2});
  CHECK(kept_inputs(p, 0) == Bytes{});
  CHECK(kept_inputs(p, 1) == Bytes{2});

  p = problem(Runtime::megatron, "mixtral-8x7b", {.dp = 8, .pp = 2, .ep = 8});
  p.model.layers = 8;
  CHECK(kept_inputs(p, 1) == Bytes{2});
  p.layout.recompute = Recompute::selective;
  p.runtime.megatron.recompute_modules = bit_of(RecomputeModule::moe);
  CHECK(kept_inputs(p, 0) == Bytes{2 * 4});
  CHECK(kept_inputs(p, 1) == Bytes{2 * 4 + 2});
  // The first checkpoint reads what was received itself; two layers in each.
  p.layout.recompute = Recompute::full;
  CHECK(kept_inputs(p, 1) == Bytes{2 * 4 + 1});
  p.runtime.megatron.recompute_num_layers = 2;
  CHECK(kept_inputs(p, 1) == Bytes{2 * 2 + 1});
  p.runtime.megatron.recompute_method = RecomputeMethod::block;
  CHECK(kept_inputs(p, 0) == Bytes{2 * 2});
}

TEST_CASE("a rotary table is one of fp32 angles, or latent attention's of each layer") {
  const auto table = [](const Problem& p) {
    const StageProgram program = Evaluator(p).stage_program(p, stages(p).front());
    const auto found = std::ranges::find(program.resident, "rotary table", &TensorSpec::name);
    REQUIRE(found != program.resident.end());
    return found->bytes;
  };
  Problem p = problem(Runtime::megatron, "llama3-8b", {.cp = 2});
  CHECK(table(p) == Bytes{4 * 4096 / 2 * 128});
  p.layout = {.dp = 1, .pp = 2, .vpp = 4, .schedule = Schedule::interleaved};
  CHECK(table(p) == Bytes{4 * 4 * 4096 * 128});  // of each chunk
  p = problem(Runtime::megatron, "deepseek-v2-lite", {.pp = 3});
  CHECK(table(p) == Bytes{9 * 2 * 2 * 4096 * 64});
}
