// Each rule on both sides of its border: a problem that breaks it first, and the nearest one that
// does not.
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

using Change = std::function<void(Problem&)>;

struct Border {
  std::string_view rule;
  Problem problem;
  Change broken;
  Change kept;  // of what is broken
};

const Layout eight{.dp = 8};
const Layout whole_shards{.dp = 8, .zero = ZeroStage::parameters};
const Layout two_rows{.tp = 2, .sequence_parallel = true};

// Six values a token over tp 4: divisible with two samples, or two tokens.
Problem narrow_engine() {
  Problem p = problem(Runtime::zeroplan, "llama3-8b", {.tp = 4, .recompute = Recompute::full});
  p.model.hidden_size = 6;
  p.model.attention.heads = p.model.attention.kv_heads = 4;
  p.training.sequence_length = 1;
  p.runtime.zeroplan.partition_activations = true;
  return p;
}

void set_end_in_16_bits(Problem& p, std::int64_t layers) {
  p.training.precision = Precision::fp8;
  p.runtime.megatron.fp8_recipe = Fp8Recipe::tensorwise;
  p.runtime.megatron.first_last_layers_bf16 = true;
  p.runtime.megatron.num_layers_at_end_in_bf16 = layers;
}

std::vector<Border> borders() {
  using enum Runtime;
  const auto on = [](Runtime runtime, std::string_view model, const Layout& layout) {
    return problem(runtime, model, layout, "H100-80GB");
  };
  const auto optimizer = [](OptimizerKind kind) -> Change {
    return [kind](Problem& p) { p.training.optimizer = kind; };
  };
  const auto tokens = [](std::int64_t length) -> Change {
    return [length](Problem& p) { p.training.sequence_length = length; };
  };
  const auto last_layers = [](std::int64_t number) -> Change {
    return [number](Problem& p) { p.runtime.fsdp2.no_reshard_layers = number; };
  };
  return {
      {"G-batch", on(megatron, "llama3-8b", {.dp = 2, .micro_batch = 2}),
       [](Problem& p) { p.training.global_batch = 6; },
       [](Problem& p) { p.training.global_batch = 8; }},
      {"G-batch", on(megatron, "llama3-8b", {.dp = 2, .micro_batch = 2}),
       [](Problem& p) { p.training.global_batch = 6; },
       [](Problem& p) { p.layout.micro_batch = 3; }},
      {"G-fp8", on(nanotron, "llama3-8b", {}),
       [](Problem& p) { p.training.precision = Precision::fp8; },
       [](Problem& p) { p.training.precision = Precision::bf16; }},
      {"M-fp8-activation-input", on(megatron, "llama3-8b", {}),
       [](Problem& p) {
         p.runtime.megatron.activation_func_fp8_input_store = true;
         p.model.mlp.gated = false;
       },
       [](Problem& p) { p.model.mlp.gated = true; }},
      {"M-fp8-activation-input", on(megatron, "mixtral-8x7b", {}),
       [](Problem& p) {
         p.runtime.megatron.activation_func_fp8_input_store = p.model.moe->clamped = true;
       },
       [](Problem& p) { p.model.moe->clamped = false; }},
      {"D-accumulation", on(deepspeed, "llama3-8b", eight),
       [](Problem& p) { p.runtime.deepspeed.fp32_grad_accumulation = true; },
       [](Problem& p) { p.layout.zero = ZeroStage::optimizer; }},
      {"G-magnitude", on(megatron, "llama3-8b", {}), tokens(std::int64_t{1} << 40),
       tokens(std::int64_t{1} << 20)},
      {"M-expert-width",
       on(megatron, "mixtral-8x7b", {.tp = 2, .etp = 2, .sequence_parallel = true}),
       [](Problem& p) { p.model.moe->intermediate_size = 14'335; },
       [](Problem& p) { p.layout.etp = 1; }},
      {"M-distributed-optimizer", on(megatron, "llama3-8b", whole_shards),
       optimizer(OptimizerKind::muon), optimizer(OptimizerKind::adam)},
      {"M-distributed-optimizer", on(megatron, "llama3-8b", whole_shards),
       optimizer(OptimizerKind::muon), [](Problem& p) { p.layout.zero = ZeroStage::optimizer; }},
      {"M-distributed-optimizer",
       on(megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer}),
       optimizer(OptimizerKind::sgd), optimizer(OptimizerKind::muon)},
      {"M-distributed-optimizer",
       on(megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer}),
       optimizer(OptimizerKind::sgd), [](Problem& p) { p.layout.zero = ZeroStage::none; }},
      {"M-fsdp-pipeline", on(megatron, "llama3-8b", {.dp = 4, .zero = ZeroStage::gradients}),
       [](Problem& p) {
         p.layout.dp = 2;
         p.layout.pp = 2;
       },
       [](Problem& p) {
         p.layout.pp = 2;
         p.layout.dp = 2;
         p.layout.zero = ZeroStage::optimizer;
       }},
      {"M-hidden-width", on(megatron, "llama3-8b", {.tp = 2}),
       [](Problem& p) { p.model.hidden_size = 4095; },
       [](Problem& p) { p.model.hidden_size = 4094; }},
      {"M-kv-heads", on(megatron, "llama3-8b", {.tp = 4}),
       [](Problem& p) { p.model.attention.kv_heads = 6; },
       [](Problem& p) { p.model.attention.kv_heads = 8; }},
      {"M-kv-heads", on(megatron, "llama3-8b", {.tp = 4}),
       [](Problem& p) { p.model.attention.kv_heads = 6; },
       [](Problem& p) { p.model.attention.kv_heads = 2; }},
      {"M-kv-heads", on(megatron, "llama3-8b", {.tp = 16}),
       [](Problem& p) { p.runtime.megatron.megatron_core = 15; },
       [](Problem& p) { p.runtime.megatron.megatron_core = 16; }},
      {"M-mtp", on(megatron, "llama3-8b", {}),
       [](Problem& p) { p.runtime.megatron.mtp_num_layers = 65; },
       [](Problem& p) { p.runtime.megatron.mtp_num_layers = 64; }},
      {"M-optimizer", on(megatron, "llama3-8b", eight), optimizer(OptimizerKind::adam8bit),
       optimizer(OptimizerKind::adam)},
      {"M-own-latents", on(megatron, "deepseek-v2-lite", {}),
       [](Problem& p) {
         p.runtime.megatron.transformer_engine_version = 0;
         p.training.attention = AttentionKernel::unfused;
       },
       [](Problem& p) { p.runtime.megatron.transformer_engine_version = 219; }},
      {"M-own-attention", on(megatron, "llama3-8b", {}),
       [](Problem& p) { p.runtime.megatron.transformer_engine_version = 0; },
       [](Problem& p) { p.runtime.megatron.megatron_core = 17; }},
      {"M-own-norms", on(megatron, "llama3-8b", two_rows),
       [](Problem& p) {
         p.runtime.megatron.transformer_engine_version = 0;
         p.training.attention = AttentionKernel::unfused;
       },
       [](Problem& p) { p.layout.sequence_parallel = false; }},
      {"M-positions", on(megatron, "gpt2", {}), tokens(1025), tokens(1024)},
      {"M-positions", on(megatron, "gpt2", {}), tokens(1025),
       [](Problem& p) { p.model.max_position_embeddings = 0; }},
      {"M-sequence-rows", on(megatron, "llama3-8b", two_rows), tokens(4095), tokens(4094)},
      {"M-sequence-rows", on(megatron, "llama3-8b", {.tp = 4, .cp = 2, .sequence_parallel = true}),
       tokens(4092), tokens(4096)},
      {"M-linear-attention", on(fsdp2, "qwen3.5-9b", whole_shards), [](Problem&) {},
       [](Problem& p) {
         p.runtime = load_runtime(Runtime::fsdp2, {{"layers", "huggingface"}});
       }},
      {"M-linear-attention", on(fsdp2, "qwen3.5-9b", whole_shards),
       [](Problem& p) {
         p.runtime.fsdp2.layers = LayerCode::huggingface;
         p.layout.dp = 4, p.layout.tp = 2;
       },
       [](Problem& p) { p.layout.dp = 8, p.layout.tp = 1; }},
      {"M-linear-attention", on(fsdp2, "qwen3.5-9b", whole_shards),
       [](Problem& p) {
         p.runtime.fsdp2.layers = LayerCode::huggingface;
         p.runtime.fsdp2.compile = true;
       },
       [](Problem& p) { p.runtime.fsdp2.compile = false; }},
      {"M-linear-attention", on(deepspeed, "qwen3.5-9b", {.dp = 4, .zero = ZeroStage::parameters}),
       [](Problem& p) { p.layout.dp = p.layout.cp = 2; },
       [](Problem& p) { p.layout.dp = 4, p.layout.cp = 1; }},
      {"M-linear-attention", on(deepspeed, "qwen3.5-9b", {.dp = 4}),
       [](Problem& p) { p.layout.dp = p.layout.tp = 2; },
       [](Problem& p) { p.layout.dp = 4, p.layout.tp = 1; }},
      {"M-linear-attention", on(deepspeed, "qwen3.5-9b", {.dp = 4}),
       [](Problem& p) { p.training.precision = Precision::fp32; },
       [](Problem& p) { p.training.precision = Precision::bf16; }},
      {"M-linear-attention", on(megatron, "qwen3.5-9b", {.dp = 4}),
       [](Problem& p) { p.runtime.megatron.megatron_core = 18; },
       [](Problem& p) { p.runtime.megatron.megatron_core = 19; }},
      {"M-linear-attention", on(megatron, "qwen3.5-9b", {.dp = 4}),
       [](Problem& p) {
         p.runtime.megatron.transformer_engine_version = 0;
         p.training.attention = AttentionKernel::unfused;
       },
       [](Problem& p) { p.runtime.megatron.transformer_engine_version = 219; }},
      {"M-linear-attention", on(fsdp2, "nemotron-h-8b", whole_shards), [](Problem&) {},
       [](Problem& p) {
         p.runtime = load_runtime(Runtime::fsdp2, {{"layers", "huggingface"}});
       }},
      {"M-linear-attention", on(deepspeed, "bamba-9b", {.dp = 4}),
       [](Problem& p) { p.layout.dp = p.layout.cp = 2; },
       [](Problem& p) { p.layout.dp = 4, p.layout.cp = 1; }},
      {"M-linear-attention", on(megatron, "nemotron-h-8b", {.dp = 4}),
       [](Problem& p) { p.runtime.megatron.megatron_core = 18; },
       [](Problem& p) { p.runtime.megatron.megatron_core = 19; }},
      {"M-state-space", on(megatron, "bamba-9b", {.dp = 4}), [](Problem&) {},
       [](Problem& p) {
         p.model.state_space.reset();
         p.model.layer_kinds.clear();
       }},
      {"M-state-space", on(megatron, "nemotron-h-8b", {.dp = 4}),
       [](Problem& p) { p.model.state_space->bias = true; },
       [](Problem& p) { p.model.state_space->bias = false; }},
      {"M-expert-latents", on(deepspeed, "nemotron-3-nano-30b-a3b", {.dp = 4}),
       [](Problem& p) { p.model.moe->latent_size = 1024; },
       [](Problem& p) { p.model.moe->latent_size = 0; }},
      {"M-linear-attention", on(nanotron, "qwen3.5-9b", {.dp = 4}), [](Problem&) {},
       [](Problem& p) {
         p.model.linear_attention.reset();
         p.model.attention.output_gate = false;
         p.model.layer_kinds.clear();
       }},
      {"M-mtp-recompute", on(megatron, "llama3-8b", {.recompute = Recompute::full}),
       [](Problem& p) {
         p.runtime.megatron.mtp_num_layers = 1;
         p.runtime.megatron.recompute_num_layers = 2;
       },
       [](Problem& p) { p.runtime.megatron.recompute_method = RecomputeMethod::block; }},
      {"M-mtp-recompute", on(megatron, "llama3-8b", {.recompute = Recompute::full}),
       [](Problem& p) {
         p.runtime.megatron.mtp_num_layers = 1;
         p.runtime.megatron.recompute_num_layers = 2;
       },
       [](Problem& p) { p.runtime.megatron.recompute_num_layers = 1; }},
      {"M-recompute-modules", on(megatron, "qwen3.5-9b", {.recompute = Recompute::selective}),
       [](Problem& p) {
         p.runtime.megatron.recompute_modules = bit_of(RecomputeModule::gdn_norm_out);
         p.model.linear_attention.reset();
         p.model.layer_kinds.clear();
       },
       [](Problem& p) {
         p.runtime.megatron.recompute_modules = bit_of(RecomputeModule::core_attn);
       }},
      {"M-ends-in-16-bits", on(megatron, "llama3-70b", {.pp = 4}),
       [](Problem& p) { set_end_in_16_bits(p, 21); },
       [](Problem& p) { set_end_in_16_bits(p, 20); }},
      {"M-outer-shards",
       on(megatron, "llama3-8b", {.dp = 8, .hsdp = 4, .zero = ZeroStage::gradients}),
       [](Problem& p) { p.runtime.megatron.outer_dp_sharding_strategy = OuterSharding::optim; },
       [](Problem& p) { p.layout.zero = ZeroStage::parameters; }},
      {"M-offloaded-modules", on(megatron, "mixtral-8x7b", {}),
       [](Problem& p) { p.runtime.megatron.offload_modules = bit_of(OffloadModule::attn_proj); },
       [](Problem& p) { p.runtime.megatron.offload_modules = bit_of(OffloadModule::core_attn); }},
      {"M-linear-heads", on(megatron, "qwen3.5-9b", {.tp = 4, .cp = 4}),
       [](Problem& p) { p.model.linear_attention->key_heads = 8; },
       [](Problem& p) { p.model.linear_attention->key_heads = 16; }},
      {"M-linear-heads", on(megatron, "qwen3.5-9b", {.tp = 4, .cp = 4}),
       [](Problem& p) { p.model.linear_attention->value_heads = 40; },
       [](Problem& p) { p.model.linear_attention->value_heads = 48; }},
      {"M-state-space-heads", on(megatron, "nemotron-h-8b", {.tp = 4, .cp = 4}),
       [](Problem& p) { p.model.state_space->heads = 120; },
       [](Problem& p) { p.model.state_space->heads = 112; }},
      {"M-state-space-heads", on(megatron, "nemotron-h-8b", {.tp = 4, .cp = 4}),
       [](Problem& p) { p.model.state_space->groups = 2; },
       [](Problem& p) { p.model.state_space->groups = 4; }},
      {"M-state-space-heads", on(megatron, "nemotron-h-8b", {.tp = 4, .cp = 4}),
       [](Problem& p) { p.model.state_space->groups = 24; },
       [](Problem& p) { p.model.state_space->groups = 8; }},
      {"M-linear-attention", on(ddp, "qwen3-next-80b-a3b", {.dp = 4}),
       [](Problem& p) { p.training.precision = Precision::fp32; },
       [](Problem& p) { p.training.precision = Precision::bf16; }},
      {"N-z-loss", on(nanotron, "llama3-8b", {}),
       [](Problem& p) { p.runtime.nanotron.z_loss = true; },
       [](Problem& p) { p.runtime.nanotron.version = NanotronVersion::of_2025_06; }},
      {"N-pipeline", on(nanotron, "llama3-8b", {.pp = 2}),
       [](Problem& p) { p.runtime.nanotron.version = NanotronVersion::of_2025_06; },
       [](Problem& p) { p.layout.pp = 1; }},
      {"N-replicas", on(nanotron, "llama3-8b", {.dp = 2, .zero = ZeroStage::optimizer}),
       [](Problem& p) { p.runtime.nanotron.version = NanotronVersion::of_2025_06; },
       [](Problem& p) { p.layout.zero = ZeroStage::none; }},
      {"N-experts", on(nanotron, "mixtral-8x7b", {}), [](Problem&) {},
       [](Problem& p) { p.model.moe.reset(); }},
      {"T-expert-rows", on(fsdp2, "mixtral-8x7b", {.dp = 16, .zero = ZeroStage::parameters}),
       [](Problem& p) { p.model.moe->intermediate_size = 14'344; },
       [](Problem& p) { p.model.moe->intermediate_size = 14'352; }},
      {"T-float8", on(fsdp2, "llama3-8b", whole_shards),
       [](Problem& p) {
         p.training.precision = Precision::fp8;
         p.runtime.fsdp2.recipe_date = 20260427;
         p.runtime.fsdp2.float8_recipe = Float8Recipe::tensorwise;
       },
       [](Problem& p) { p.runtime.fsdp2.recipe_date = 20260426; }},
      {"T-float8", on(fsdp2, "llama3-8b", whole_shards),
       [](Problem& p) {
         p.training.precision = Precision::fp8;
         p.runtime.fsdp2.recipe_date = 20260427;
         p.runtime.fsdp2.float8_all_gather = true;
       },
       [](Problem& p) { p.runtime.fsdp2.recipe_date = 20260426; }},
      {"T-async", on(fsdp2, "llama3-8b", whole_shards),
       [](Problem& p) { p.runtime.fsdp2.async_tensor_parallel = true; },
       [](Problem& p) { p.runtime.fsdp2.compile = true; }},
      {"T-windows", on(fsdp2, "gemma3-12b", {.dp = 4, .cp = 2, .zero = ZeroStage::parameters}),
       [](Problem& p) { p.runtime.fsdp2.layers = LayerCode::huggingface; },
       [](Problem& p) { p.model.attention.windowed_layers = 0; }},
      {"H-context-sdpa", on(fsdp2, "llama3-8b", {.dp = 4, .cp = 2, .zero = ZeroStage::parameters}),
       [](Problem& p) {
         p.runtime.fsdp2.layers = LayerCode::huggingface;
         p.runtime.attn_implementation = AttnImplementation::flash_attention_2;
       },
       [](Problem& p) { p.runtime.attn_implementation = AttnImplementation::sdpa; }},
      {"H-pipeline", on(fsdp2, "llama3-8b", {.dp = 4, .pp = 2, .zero = ZeroStage::gradients}),
       [](Problem& p) { p.runtime.fsdp2.layers = LayerCode::huggingface; },
       [](Problem& p) { p.runtime.fsdp2.layers = LayerCode::torchtitan; }},
      {"H-recompute",
       on(fsdp2, "llama3-8b",
          {.dp = 8, .zero = ZeroStage::parameters, .recompute = Recompute::selective}),
       [](Problem& p) { p.runtime.fsdp2.layers = LayerCode::huggingface; },
       [](Problem& p) { p.layout.recompute = Recompute::full; }},
      {"H-experts", on(fsdp2, "mixtral-8x7b", {.dp = 8, .ep = 2, .zero = ZeroStage::parameters}),
       [](Problem& p) { p.runtime.fsdp2.layers = LayerCode::huggingface; },
       [](Problem& p) { p.runtime.fsdp2.layers = LayerCode::torchtitan; }},
      {"H-flash-attention", on(fsdp2, "llama4-scout", whole_shards),
       [](Problem& p) {
         p.runtime.fsdp2.layers = LayerCode::huggingface;
         p.runtime.attn_implementation = AttnImplementation::flash_attention_2;
       },
       [](Problem& p) { p.runtime.fsdp2.layers = LayerCode::torchtitan; }},
      {"H-flash-attention", on(ddp, "llama3-8b", eight),
       [](Problem& p) {
         p.training.precision = Precision::fp32;
         p.runtime.attn_implementation = AttnImplementation::flash_attention_2;
       },
       [](Problem& p) { p.training.precision = Precision::fp16; }},
      {"H-flash-attention", on(deepspeed, "llama3-8b", whole_shards),
       [](Problem& p) {
         p.training.attention = AttentionKernel::unfused;
         p.runtime.attn_implementation = AttnImplementation::flash_attention_2;
       },
       [](Problem& p) { p.training.attention = AttentionKernel::flash; }},
      {"H-flash-attention", on(ddp, "bloom-560m", eight),
       [](Problem& p) { p.runtime.attn_implementation = AttnImplementation::flash_attention_2; },
       [](Problem& p) { p.runtime.attn_implementation = AttnImplementation::sdpa; }},
      {"H-context-sdpa", on(fsdp2, "llama3-8b", {.dp = 4, .cp = 2, .zero = ZeroStage::parameters}),
       [](Problem& p) {
         p.runtime.fsdp2.layers = LayerCode::huggingface;
         p.training.attention = AttentionKernel::unfused;
       },
       [](Problem& p) { p.runtime.fsdp2.layers = LayerCode::torchtitan; }},
      {"T-reshard", on(fsdp2, "llama3-8b", whole_shards),
       [](Problem& p) {
         p.runtime.fsdp2.layers = LayerCode::huggingface;
         p.runtime.fsdp2.reshard_after_forward = Reshard::always;
       },
       [](Problem& p) { p.runtime.fsdp2.layers = LayerCode::torchtitan; }},
      {"T-recompute-layers", on(fsdp2, "llama3-8b", whole_shards),
       [](Problem& p) { p.runtime.fsdp2.recompute_num_layers = 1; },
       [](Problem& p) { p.layout.recompute = Recompute::full; }},
      {"T-recompute-layers", on(fsdp2, "llama3-8b", whole_shards),
       [](Problem& p) {
         p.layout.recompute = Recompute::selective;
         p.runtime.fsdp2.recompute_num_layers = 1;
         p.runtime.fsdp2.selective_ac_layers = 1;
       },
       [](Problem& p) { p.runtime.fsdp2.selective_ac_layers = 0; }},
      {"T-recompute-layers", on(fsdp2, "llama3-8b", whole_shards),
       [](Problem& p) {
         p.layout.recompute = Recompute::full;
         p.runtime.fsdp2.selective_rest = true;
       },
       [](Problem& p) { p.runtime.fsdp2.recompute_num_layers = 1; }},
      {"T-reshard-layers", on(fsdp2, "llama3-8b", whole_shards), last_layers(33), last_layers(32)},
      {"T-reshard-layers", on(fsdp2, "llama3-8b", whole_shards),
       [](Problem& p) {
         p.runtime.fsdp2.no_reshard_layers = 1;
         p.layout.zero = ZeroStage::gradients;
       },
       [](Problem& p) { p.layout.zero = ZeroStage::parameters; }},
      {"T-reshard-layers",
       on(fsdp2, "llama3-8b", {.dp = 2, .pp = 2, .zero = ZeroStage::parameters}), last_layers(1),
       last_layers(0)},
      {"T-reshard-layers", on(fsdp2, "llama3-8b", whole_shards),
       [](Problem& p) {
         p.runtime.fsdp2.no_reshard_layers = 1;
         p.runtime.fsdp2.reshard_after_forward = Reshard::always;
       },
       [](Problem& p) { p.runtime.fsdp2.reshard_after_forward = Reshard::by_default; }},
      {"Z-checkpoints", narrow_engine(), [](Problem&) {},
       [](Problem& p) { p.layout.micro_batch = 2, p.training.global_batch = 2; }},
      {"Z-checkpoints", narrow_engine(), [](Problem&) {}, tokens(2)},
      {"Z-checkpoints", narrow_engine(), [](Problem&) {},
       [](Problem& p) { p.model.hidden_size = 8; }},
      {"Z-checkpoints", narrow_engine(), [](Problem& p) { p.layout.recompute = Recompute::none; },
       [](Problem& p) { p.runtime.zeroplan.partition_activations = false; }},
      {"Z-grid", on(zeroplan, "llama3-8b", {.cp = 2}), [](Problem&) {},
       [](Problem& p) { p.layout.cp = 1, p.cluster.gpus = 1; }},
      {"Z-model", on(zeroplan, "gemma2-9b", eight), [](Problem&) {},
       [](Problem& p) { p.model = find_model("llama3-8b").spec; }},
      {"Z-optimizer", on(zeroplan, "llama3-8b", eight), optimizer(OptimizerKind::sgd),
       optimizer(OptimizerKind::adam)},
      {"Z-overlap", on(zeroplan, "llama3-8b", eight),
       [](Problem& p) {
         p.runtime.zeroplan.overlap_comm = p.runtime.zeroplan.contiguous_memory_optimization = true;
       },
       [](Problem& p) { p.runtime.zeroplan.overlap_comm = false; }},
      {"Z-precision", on(zeroplan, "llama3-8b", eight),
       [](Problem& p) { p.training.precision = Precision::fp16; },
       [](Problem& p) { p.training.precision = Precision::bf16; }},
  };
}

}  // namespace

TEST_CASE("a rule refuses what lies beyond its border and nothing before it") {
  for (const Border& border : borders()) {
    Problem p = border.problem;
    border.broken(p);
    const auto refused = first_violation(p);
    CAPTURE(border.rule, name_of(p.runtime.kind), refused ? refused->reason : "nothing");
    REQUIRE((refused && refused->rule == border.rule));
    border.kept(p);
    const auto left = first_violation(p);
    CAPTURE(left ? left->rule : "", left ? left->reason : "");
    REQUIRE_FALSE(left.has_value());
  }
}

TEST_CASE("each rule is named by a test") {
  std::string text;
  namespace fs = std::filesystem;
  for (const auto& entry : fs::recursive_directory_iterator(source_dir() + "/tests/cost_model")) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream file(entry.path());
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  for (const Runtime runtime : tests::runtimes()) {
    for (const Rule& rule : rules_of(load_runtime(runtime, {})).rules) {
      CAPTURE(name_of(runtime), rule.id);
      REQUIRE(text.find('"' + std::string(rule.id) + '"') != std::string::npos);
    }
  }
}
