// What does each model_type build? Front door: hf_families; those of experts, but for hybrids, have
// a file of their own.
// Source: the modeling files of Hugging Face transformers; each row reproduces a published
// parameter count to the unit where there is one (tests/presets/catalog_test.cpp).
#include <algorithm>
#include <array>
#include <vector>

#include "presets/hf_families.hpp"
#include "presets/hf_hybrids.hpp"
#include "presets/hf_quirks.hpp"

namespace zeroplan {
namespace {

// GPT-2 and its relatives: LayerNorm, biases, an MLP of four times the width.
constexpr HfFamily gpt_like(std::string_view model_type) {
  return {.model_type = model_type,
          .norm = Norm::layer,
          .qkv_bias = true,
          .output_bias = true,
          .gated_mlp = false,
          .mlp_bias = true,
          .mlp_four_times_hidden = true,
          .tied_embeddings = true};
}

constexpr HfFamily gpt_with_positions(std::string_view model_type) {
  HfFamily family = gpt_like(model_type);
  family.first_position_row = 0;
  return family;
}

constexpr HfFamily bloom() {
  HfFamily family = gpt_like("bloom");
  family.read_quirks = bloom_quirks;
  return family;
}

constexpr HfFamily falcon() {
  HfFamily family = gpt_like("falcon");
  family.read_quirks = falcon_quirks;
  return family;
}

constexpr HfFamily gpt_neo() {
  HfFamily family = gpt_with_positions("gpt_neo");
  family.qkv_bias = false;
  return family;
}

constexpr HfFamily gpt_neox() {
  HfFamily family = gpt_like("gpt_neox");
  family.attention_bias = BiasKey::qkv_and_output;
  family.mlp_four_times_hidden = false;
  family.tied_embeddings = false;
  family.read_quirks = neox_quirks;
  return family;
}

constexpr HfFamily gptj() {
  HfFamily family = gpt_like("gptj");
  family.norms_per_layer = 1;
  family.parallel_residual = true;
  family.qkv_bias = family.output_bias = false;
  family.tied_embeddings = false;
  family.head_bias = true;
  return family;
}

constexpr HfFamily opt() {
  HfFamily family = gpt_like("opt");
  family.mlp_four_times_hidden = false;
  family.first_position_row = 2;  // OPTLearnedPositionalEmbedding.offset
  family.read_quirks = opt_quirks;
  return family;
}

constexpr HfFamily starcoder2() {
  HfFamily family = gpt_like("starcoder2");
  family.kv_heads_in_file = true;
  family.mlp_four_times_hidden = false;
  family.read_quirks = starcoder2_quirks;
  return family;
}

constexpr HfFamily phi() {
  HfFamily family = gpt_like("phi");
  family.norms_per_layer = 1;
  family.parallel_residual = true;
  family.mlp_four_times_hidden = false;
  family.tied_embeddings = false;
  family.head_bias = true;
  family.read_quirks = phi_quirks;
  return family;
}

// Llama and its relatives: RMSNorm, gated MLP, no biases unless the file says so.
constexpr HfFamily llama(std::string_view model_type) {
  return {.model_type = model_type,
          .attention_bias = BiasKey::qkv_and_output,
          .read_quirks = llama_quirks};
}

// SmolLM3 leaves every fourth layer unturned, and ties its embeddings.
constexpr HfFamily smollm3() {
  HfFamily family = llama("smollm3");
  family.tied_embeddings = true;
  return family;
}

constexpr HfFamily seed_oss() {
  return {.model_type = "seed_oss",
          .qkv_bias = true,
          .attention_bias = BiasKey::qkv,
          .head_dim_in_file = true,
          .kv_heads_in_file = true,
          .read_quirks = seed_oss_quirks};
}

// An MLP of one projection and ReLU squared; Nemotron's norms are LayerNorms.
constexpr HfFamily with_squared_relu(std::string_view model_type, Norm norm) {
  return {.model_type = model_type,
          .norm = norm,
          .attention_bias = BiasKey::qkv_and_output,
          .gated_mlp = false,
          .read_quirks = squared_relu_quirks};
}

constexpr HfFamily mistral(std::string_view model_type) {
  return {.model_type = model_type, .kv_heads_in_file = true};
}

constexpr HfFamily qwen2() {
  return {.model_type = "qwen2", .qkv_bias = true, .kv_heads_in_file = true};
}

constexpr HfFamily qwen3() {
  return {.model_type = "qwen3",
          .attention_bias = BiasKey::qkv_and_output,
          .qk_norm = true,
          .head_dim_in_file = true,
          .kv_heads_in_file = true};
}

// Of four layers three have linear attention; the other's output has a gate.
constexpr HfFamily qwen_hybrid(std::string_view model_type,
                               void (*read_experts)(const JsonObject&, ModelSpec&)) {
  HfFamily family = qwen3();
  family.model_type = model_type;
  family.read_experts = read_experts;
  family.read_quirks = qwen_hybrid_quirks;
  return family;
}

// Layers are state spaces but for those that the file names.
constexpr HfFamily bamba() {
  return {.model_type = "bamba",
          .attention_bias = BiasKey::qkv_and_output,
          .kv_heads_in_file = true,
          .read_quirks = bamba_quirks};
}

// Layers are one half each, and no position is told.
constexpr HfFamily nemotron_h() {
  return {.model_type = "nemotron_h",
          .head_dim_in_file = true,
          .kv_heads_in_file = true,
          .lists_layers = true,
          .gated_mlp = false,
          .read_experts = read_nemotron_h_experts,
          .read_quirks = nemotron_h_quirks};
}

constexpr HfFamily gemma(std::string_view model_type, std::int64_t norms_per_layer, bool qk_norm) {
  return {.model_type = model_type,
          .norms_per_layer = norms_per_layer,
          .attention_bias = BiasKey::qkv_and_output,
          .qk_norm = qk_norm,
          .head_dim_in_file = true,
          .kv_heads_in_file = true,
          .tied_embeddings = true};
}

// transformers models/gemma2 and gemma3 configuration: layer_types.
constexpr HfFamily windowed_gemma(std::string_view model_type, bool qk_norm, std::int64_t every) {
  HfFamily family = gemma(model_type, 4, qk_norm);
  family.window_every = every;
  return family;
}

// Norms of what each half gives, none of what it reads.
constexpr HfFamily with_norms_after(std::string_view model_type,
                                    bool joint_qk_norm,
                                    std::int64_t window_every) {
  return {.model_type = model_type,
          .norms_after = true,
          .attention_bias = joint_qk_norm ? BiasKey::qkv_and_output : BiasKey::nothing,
          .qk_norm = true,
          .joint_qk_norm = joint_qk_norm,
          .window_every = window_every};
}

// One LayerNorm a layer, without a bias, for attention and MLP beside it.
constexpr HfFamily cohere(std::string_view model_type, std::int64_t window_every) {
  return {.model_type = model_type,
          .norm = Norm::layer,
          .norms_per_layer = 1,
          .parallel_residual = true,
          .attention_bias = BiasKey::qkv_and_output,
          .window_every = window_every,
          .tied_embeddings = true,
          .read_quirks = cohere_quirks};
}

constexpr HfFamily ernie4_5() {
  return {.model_type = "ernie4_5",
          .head_dim_in_file = true,
          .kv_heads_in_file = true,
          .tied_embeddings = true,
          .read_quirks = ernie_quirks};
}

constexpr HfFamily glm(std::string_view model_type, std::int64_t norms_per_layer) {
  return {.model_type = model_type,
          .norms_per_layer = norms_per_layer,
          .qkv_bias = true,
          .attention_bias = BiasKey::qkv,
          .head_dim_in_file = true,
          .kv_heads_in_file = true};
}

constexpr HfFamily helium() {
  return {.model_type = "helium",
          .attention_bias = BiasKey::qkv,
          .head_dim_in_file = true,
          .kv_heads_in_file = true,
          .read_quirks = helium_quirks};
}

constexpr HfFamily hunyuan_v1_dense() {
  return {
      .model_type = "hunyuan_v1_dense", .attention_bias = BiasKey::qkv_and_output, .qk_norm = true};
}

constexpr HfFamily hyperclovax() {
  HfFamily family = llama("hyperclovax");
  family.read_quirks = hyperclovax_quirks;
  return family;
}

constexpr HfFamily internlm3() {
  HfFamily family = llama("internlm3");
  family.head_dim_in_file = true;
  family.read_quirks = internlm3_quirks;
  return family;
}

constexpr HfFamily stablelm() {
  return {.model_type = "stablelm", .norm = Norm::layer, .read_quirks = stablelm_quirks};
}

// Youtu: the layers of DeepSeek-V3 without experts.
constexpr HfFamily youtu() {
  return {.model_type = "youtu",
          .attention_bias = BiasKey::qkv_and_output,
          .latent_attention = true,
          .tied_embeddings = true};
}

// Layers are state spaces but for those that the file names, and each has experts, or else an MLP.
constexpr HfFamily granitemoehybrid() {
  return {.model_type = "granitemoehybrid",
          .attention_bias = BiasKey::qkv_and_output,
          .read_experts = read_granite_experts,
          .read_quirks = granite_hybrid_quirks};
}

constexpr HfFamily phi3() {
  return {.model_type = "phi3"};
}

constexpr std::array families{
    with_squared_relu("arcee", Norm::rms),
    bamba(),
    bloom(),
    cohere("cohere", 0),
    cohere("cohere2", 4),
    ernie4_5(),
    with_norms_after("exaone4", false, 4),
    falcon(),
    gemma("gemma", 2, false),
    windowed_gemma("gemma2", false, 2),
    windowed_gemma("gemma3_text", true, 6),
    glm("glm", 2),
    glm("glm4", 4),
    gpt_with_positions("gpt2"),
    gpt_neo(),
    gpt_neox(),
    gptj(),
    llama("granite"),
    granitemoehybrid(),
    helium(),
    hunyuan_v1_dense(),
    hyperclovax(),
    internlm3(),
    llama("llama"),
    gpt_with_positions("megatron_gpt"),  // ours: the GPT of the Megatron and ZeRO papers
    mistral("ministral"),
    mistral("ministral3"),
    mistral("mistral"),
    with_squared_relu("nemotron", Norm::layer),
    nemotron_h(),
    with_norms_after("olmo2", true, 0),
    with_norms_after("olmo3", true, 4),
    opt(),
    phi(),
    phi3(),
    qwen2(),
    qwen3(),
    qwen_hybrid("qwen3_5_moe_text", read_qwen2_experts),
    qwen_hybrid("qwen3_5_text", nullptr),
    qwen_hybrid("qwen3_next", read_qwen2_experts),
    seed_oss(),
    smollm3(),
    stablelm(),
    starcoder2(),
    youtu(),
};

}  // namespace

std::span<const HfFamily> hf_families() {
  static const std::vector<HfFamily> all = [] {
    std::vector<HfFamily> both(families.begin(), families.end());
    const auto experts = hf_expert_families();
    both.insert(both.end(), experts.begin(), experts.end());
    std::ranges::sort(both, {}, &HfFamily::model_type);
    return both;
  }();
  return all;
}

}  // namespace zeroplan
