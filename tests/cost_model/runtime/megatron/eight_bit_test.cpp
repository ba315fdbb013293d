// What Megatron-Core holds of 8-bit weights, and of a model before it is divided.
#include "cost_model/answer/estimate.hpp"
#include "cost_model/legality/legality.hpp"
#include "cost_model/runtime/megatron/ends.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "cost_model/runtime/megatron/offload.hpp"
#include "cost_model/states/buffers.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

// Llama 3 70B: 80 layers of 855,638,016 elements in matrices and two norms of 8192.
constexpr std::int64_t of_layer = 855'638'016;
constexpr std::int64_t all = 80 * of_layer;
constexpr std::int64_t ranks = 64;

Problem llama_70b(std::string_view gpu, ZeroStage zero, bool gathers_8_bits) {
  Problem p = problem(Runtime::megatron, "llama3-70b",
                      {.dp = ranks, .zero = zero, .recompute = Recompute::full}, gpu);
  p.training.precision = Precision::fp8;
  p.runtime.megatron.fp8_param_gather = gathers_8_bits;
  return p;
}

Bytes copies(const Problem& p) {
  for (const Workspace& w : workspaces(p, weight_inventory(p.model), stages(p).front())) {
    if (w.name.ends_with("-bit copies of the weights")) return w.bytes;
  }
  return {};
}

ModelStates states(const Problem& p) {
  return model_states(p, weight_inventory(p.model), stages(p).front());
}

// The one layer that a step gathers for the next.
Bytes early_in(const Problem& p) {
  return fsdp_gathered_early(p, weight_inventory(p.model), stages(p).front()).at(0);
}

}  // namespace

// TransformerEngine pytorch/module/linear.py: `_fp8_workspaces`, left out under FSDP2 alone.
TEST_CASE("modules keep 8-bit copies of 16-bit weights, whole under every ZeRO stage") {
  for (const ZeroStage zero : {ZeroStage::none, ZeroStage::optimizer, ZeroStage::parameters}) {
    CHECK(copies(llama_70b("H100", zero, false)) == Bytes{2 * all});
    // Blackwell's products take either orientation.
    CHECK(copies(llama_70b("GB200", zero, false)) == Bytes{all});
  }
}

TEST_CASE("scales along each direction need a copy for each, of 8 or of 4 bits") {
  Problem p = llama_70b("GB200", ZeroStage::optimizer, false);
  p.runtime.megatron.fp8_recipe = Fp8Recipe::tensorwise;
  CHECK(copies(p) == Bytes{all});
  p.runtime.megatron.fp8_recipe = Fp8Recipe::blockwise;
  CHECK(copies(p) == Bytes{2 * all});
  p.runtime.megatron.fp8_recipe = Fp8Recipe::mxfp8;
  CHECK(copies(p) == Bytes{2 * (all + all / 32)});
  p.runtime.megatron.fp8_param_gather = true;
  CHECK(copies(p) == Bytes{all + 2 * (all / 32)});  // and the scales of the weights themselves
  p.runtime.megatron.fp8_param_gather = false;
  p.training.precision = Precision::nvfp4;
  CHECK(copies(p) == Bytes{2 * (all / 2 + all / 16)});
}

TEST_CASE("8-bit weights need transposes alone, under ZeRO 3 those of one layer") {
  CHECK(copies(llama_70b("H100", ZeroStage::optimizer, true)) == Bytes{all});
  CHECK(copies(llama_70b("H100", ZeroStage::parameters, true)) == Bytes{of_layer});
  CHECK(copies(llama_70b("GB200", ZeroStage::parameters, true)) == Bytes{});
}

// core/extensions/transformer_engine.py TELMHeadColumnParallelLinear.
TEST_CASE("an output layer of 8 bits keeps both copies, and copies the logits' gradient") {
  Problem p = llama_70b("GB200", ZeroStage::optimizer, true);
  p.runtime.megatron.fp8_recipe = Fp8Recipe::mxfp8;
  const auto head_bytes = [&] { return megatron_head(p); };
  const Bytes layers = copies(p);
  const Block wide = head_bytes();
  p.runtime.megatron.fp8_output_proj = true;
  const std::int64_t words = 128'256 * 8192LL;
  CHECK(copies(p) - layers == Bytes{2 * (words + words / 32)});
  const Block narrow = head_bytes();
  const auto bytes_of = [](const Block& block, std::string_view name) {
    for (const TensorSpec& t : block.tensors) {
      if (t.name == name) return t.bytes;
    }
    return Bytes{};
  };
  const std::int64_t logits = local_tokens(p) * 128'256;
  CHECK(bytes_of(wide, "8-bit copies of the logits gradient") == Bytes{});
  CHECK(bytes_of(narrow, "8-bit copies of the logits gradient") ==
        Bytes{2 * (logits + logits / 32)});
}

TEST_CASE("fp8_param_gather keeps, gathers and sends matrices in one byte") {
  const Problem wide = llama_70b("H100", ZeroStage::parameters, false);
  const Problem narrow = llama_70b("H100", ZeroStage::parameters, true);
  CHECK(states(wide).parameters - states(narrow).parameters == Bytes{all / ranks});
  CHECK(states(wide).master_parameters == states(narrow).master_parameters);
  // But for vectors and padding.
  const Bytes saved = early_in(wide) - early_in(narrow);
  CHECK(saved >= Bytes{of_layer});
  CHECK(saved < Bytes{of_layer / 100 * 101});
  const auto is_gather = [](const CollectiveLoad& l) {
    return l.collective == Collective::all_gather;
  };
  CHECK(sent(loads_of(wide), is_gather) - sent(loads_of(narrow), is_gather) ==
        2 * all / ranks * (ranks - 1));
}

TEST_CASE("of mxfp8 DDP gathers 16 bits, and casts what has come; Megatron-FSDP gathers 8") {
  const auto gathered = [](ZeroStage zero, Fp8Recipe recipe, bool eight_bits) {
    Problem p = llama_70b("GB200", zero, eight_bits);
    p.runtime.megatron.fp8_recipe = recipe;
    return sent(loads_of(p),
                [](const CollectiveLoad& l) { return l.collective == Collective::all_gather; });
  };
  using enum ZeroStage;
  using enum Fp8Recipe;
  CHECK(gathered(optimizer, mxfp8, true) == gathered(optimizer, mxfp8, false));
  CHECK(gathered(optimizer, tensorwise, true) < gathered(optimizer, tensorwise, false));
  CHECK(gathered(parameters, mxfp8, true) < gathered(parameters, mxfp8, false));
}

TEST_CASE("remainders of master parameters need 16-bit weights beside them") {
  Problem p = llama_70b("H100", ZeroStage::optimizer, false);
  p.runtime.megatron.use_precision_aware_optimizer = true;
  CHECK(state_recipe(p).master_bytes == 2);
  p.runtime.megatron.fp8_param_gather = true;
  CHECK(state_recipe(p).master_bytes == 4);
}

TEST_CASE("fp8_param_gather needs fp8 and a distributed optimizer") {
  const auto refused = [](const Problem& p) {
    const auto violation = first_violation(p);
    return violation && violation->rule == "M-8-bit-parameters";
  };
  CHECK_FALSE(refused(llama_70b("H100", ZeroStage::optimizer, true)));
  CHECK(refused(llama_70b("H100", ZeroStage::none, true)));
  Problem p = llama_70b("H100", ZeroStage::parameters, true);
  p.training.precision = Precision::bf16;
  CHECK(refused(p));
}

// training/training.py get_model: the model is built on the GPU, or in Megatron-FSDP's buffers.
TEST_CASE("a model on the meta device is never whole on a GPU that shards it") {
  const auto construction = [](const Problem& p) {
    const Evaluator evaluator(p);
    const Stage stage = stages(p).front();
    const Startup startup = evaluator.startup(p, stage, evaluator.stage_program(p, stage));
    const Block& block = startup.construction;
    return fold(block, block.forward, Phase::init).peak.live[Category::parameters];
  };
  Problem p = problem(Runtime::megatron, "llama3-70b",
                      {.dp = ranks, .zero = ZeroStage::parameters, .recompute = Recompute::full});
  const Bytes whole = 2 * Bytes{70'553'706'496};
  const Bytes shard = states(p).parameters;
  CHECK(construction(p) > whole);
  CHECK(estimate(p, Evaluator(p)).verdict == Verdict::does_not_fit);
  p.runtime.megatron.init_model_with_meta_device = true;
  CHECK(construction(p) - shard < Bytes{512});
  CHECK(estimate(p, Evaluator(p)).verdict == Verdict::fits);
  // Without Megatron-FSDP it is made whole all the same.
  p.layout.zero = ZeroStage::optimizer;
  CHECK(construction(p) > whole);
}

// TransformerEngine pytorch/module/grouped_linear.py saves what its products read: of Qwen3-30B-A3B
// 8 copies of 2,048 values a token and of 768, and the 2,048 that the projection of queries reads.
// The router reads its 2,048 in 16 bits.
TEST_CASE("a layer of experts saves the inputs of its products in 8 bits") {
  Problem p = problem(Runtime::megatron, "qwen3-30b-a3b",
                      {.dp = 8, .ep = 8, .zero = ZeroStage::optimizer}, "GB200");
  p.runtime.megatron.fp8_recipe = Fp8Recipe::tensorwise;
  const auto saved = [&] { return saved_bytes(megatron_layer(p, LayerKind::moe)); };
  const Bytes wide = saved();
  p.training.precision = Precision::fp8;
  const std::int64_t narrowed = (8 * (2048 + 768) + 2048) * local_tokens(p);
  CHECK(wide - saved() == Bytes{narrowed});
  // A copy of the attention's output, 4,096 values, where the projection saves one of its own.
  const Bytes original = saved();
  const Bytes copied{4096 * local_tokens(p)};
  p.runtime.megatron.transformer_engine_version = 205;
  CHECK(saved() - original == copied);
  p.runtime.megatron.transformer_engine_version = 216;
  p.runtime.megatron.fp8_recipe = Fp8Recipe::delayed;
  CHECK(saved() - original == copied);
}

// Of DeepSeek-V3 both down-projections save a copy of 7,168 values, and the up-projections theirs
// of 1,536 and 512; core/transformer/multi_latent_attention.py.
TEST_CASE("each down-projection of a latent saves its input in 8 bits") {
  Problem p = problem(Runtime::megatron, "deepseek-v3",
                      {.dp = 64, .ep = 64, .zero = ZeroStage::optimizer}, "GB200");
  p.runtime.megatron.fp8_recipe = Fp8Recipe::tensorwise;
  const auto saved = [&] { return saved_bytes(megatron_layer(p, LayerKind::dense)); };
  const Bytes wide = saved();
  p.training.precision = Precision::fp8;
  const std::int64_t mlp = 7168 + 18'432;
  CHECK(wide - saved() == Bytes{(1536 + 512 + mlp) * local_tokens(p)});
}

// Megatron-LM core/fusions/fused_bias_swiglu.py; a checkpoint keeps what it is given
// (core/transformer/moe/experts.py), but DeepSeek-V3's layers do not (section 3.3.3).
TEST_CASE("SwiGLU's input is kept in one byte where that is asked for") {
  const auto saved = [](Problem p, bool narrow) {
    p.runtime.megatron.activation_func_fp8_input_store = narrow;
    return saved_bytes(megatron_layer(p, p.model.moe ? LayerKind::moe : LayerKind::dense));
  };
  const auto spared = [&](const Problem& p) { return saved(p, false) - saved(p, true); };
  const Problem dense = problem(Runtime::megatron, "llama3-8b", {.micro_batch = 2}, "H100");
  CHECK(spared(dense) == Bytes{2 * 14336 * 2 * dense.training.sequence_length});

  Problem experts = problem(Runtime::megatron, "mixtral-8x7b", {.dp = 8, .ep = 8}, "H100");
  const Bytes of_routed{2 * 14336 * 2 * experts.training.sequence_length};
  CHECK(spared(experts) == of_routed);
  experts.layout.recompute = Recompute::selective;
  experts.runtime = load_runtime(Runtime::megatron, {{"recompute_modules", "moe_act"}});
  CHECK(spared(experts) == Bytes{});
  experts.layout.schedule = Schedule::dualpipe;
  experts.runtime.megatron.pipeline_code = PipelineCode::dualpipe;
  CHECK(spared(experts) == of_routed);
}
