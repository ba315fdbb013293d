// What does each model_type with experts build? Front door: hf_expert_families.
// Source: as hf_families.cpp.
#include <array>

#include "presets/hf_families.hpp"
#include "presets/hf_hybrids.hpp"
#include "presets/hf_quirks.hpp"

namespace zeroplan {
namespace {

using ReadExperts = void (*)(const JsonObject&, ModelSpec&);

// Grouped heads as wide as the file says, norms and projections as Llama's.
constexpr HfFamily with_experts(std::string_view model_type,
                                BiasKey attention_bias,
                                ReadExperts experts) {
  return {.model_type = model_type, .attention_bias = attention_bias, .read_experts = experts};
}

constexpr HfFamily mixtral() {
  HfFamily family = with_experts("mixtral", BiasKey::nothing, read_mixtral_experts);
  family.kv_heads_in_file = true;
  return family;
}

constexpr HfFamily phimoe() {
  HfFamily family = with_experts("phimoe", BiasKey::qkv_and_output, read_mixtral_experts);
  family.norm = Norm::layer;
  family.kv_heads_in_file = true;
  family.read_quirks = phimoe_quirks;
  return family;
}

constexpr HfFamily qwen2_moe() {
  return {.model_type = "qwen2_moe",
          .qkv_bias = true,
          .kv_heads_in_file = true,
          .read_experts = read_qwen2_experts,
          .read_quirks = qwen2_moe_quirks};
}

constexpr HfFamily with_head_norms(std::string_view model_type, ReadExperts experts) {
  return {.model_type = model_type,
          .attention_bias = BiasKey::qkv_and_output,
          .qk_norm = true,
          .kv_heads_in_file = true,
          .read_experts = experts};
}

constexpr HfFamily hy_v3() {
  HfFamily family = with_head_norms("hy_v3", read_deepseek_v3_experts);
  family.read_quirks = hy_v3_quirks;
  return family;
}

// DeepSeek: attention_bias adds to the two latent projections and to the output.
constexpr HfFamily deepseek(std::string_view model_type, ReadExperts experts) {
  return {.model_type = model_type,
          .attention_bias = BiasKey::qkv_and_output,
          .latent_attention = true,
          .read_experts = experts};
}

constexpr HfFamily glm4_moe() {
  return {.model_type = "glm4_moe",
          .attention_bias = BiasKey::qkv,
          .kv_heads_in_file = true,
          .read_experts = read_deepseek_v3_experts,
          .read_quirks = glm_quirks};
}

// MiniMax-M2: queries and keys have one norm for all heads.
constexpr HfFamily minimax_m2() {
  return {.model_type = "minimax_m2",
          .qk_norm = true,
          .joint_qk_norm = true,
          .head_dim_in_file = true,
          .kv_heads_in_file = true,
          .read_experts = read_minimax_experts};
}

constexpr HfFamily dots1() {
  return {.model_type = "dots1",
          .attention_bias = BiasKey::qkv_and_output,
          .qk_norm = true,
          .read_experts = read_deepseek_v3_experts};
}

// FlexOlmo has the layers of OLMo 2.
constexpr HfFamily olmo_with_experts(std::string_view model_type, bool norms_after) {
  return {.model_type = model_type,
          .norms_after = norms_after,
          .attention_bias = BiasKey::qkv_and_output,
          .qk_norm = true,
          .joint_qk_norm = true,
          .read_experts = read_mixtral_experts,
          .read_quirks = olmoe_quirks};
}

constexpr HfFamily gpt_oss() {
  return {.model_type = "gpt_oss",
          .qkv_bias = true,
          .output_bias = true,
          .attention_bias = BiasKey::qkv_and_output,
          .head_dim_in_file = true,
          .kv_heads_in_file = true,
          .window_every = 2,
          .read_experts = read_gpt_oss_experts,
          .read_quirks = gpt_oss_quirks};
}

constexpr HfFamily llama4_text() {
  return {.model_type = "llama4_text",
          .attention_bias = BiasKey::qkv_and_output,
          .head_dim_in_file = true,
          .kv_heads_in_file = true,
          .read_experts = read_llama4_experts,
          .read_quirks = llama4_quirks};
}

constexpr HfFamily ernie4_5_moe() {
  return {.model_type = "ernie4_5_moe",
          .kv_heads_in_file = true,
          .tied_embeddings = true,
          .read_experts = read_ernie_experts,
          .read_quirks = ernie_moe_quirks};
}

constexpr HfFamily exaone_moe() {
  return {.model_type = "exaone_moe",
          .qk_norm = true,
          .kv_heads_in_file = true,
          .window_every = 4,
          .read_experts = read_deepseek_v3_experts};
}

constexpr HfFamily solar_open() {
  return {.model_type = "solar_open",
          .attention_bias = BiasKey::qkv,
          .head_dim_in_file = true,
          .kv_heads_in_file = true,
          .read_experts = read_solar_experts};
}

// Trinity: norms before and after each half, and a gate of what attention gives.
constexpr HfFamily afmoe() {
  return {.model_type = "afmoe",
          .norms_per_layer = 4,
          .qk_norm = true,
          .head_dim_in_file = true,
          .window_every = 4,
          .read_experts = read_afmoe_experts,
          .read_quirks = afmoe_quirks};
}

constexpr std::array families_of_experts{
    afmoe(),
    deepseek("deepseek_v2", read_deepseek_v2_experts),
    deepseek("deepseek_v3", read_deepseek_v3_experts),
    dots1(),
    ernie4_5_moe(),
    exaone_moe(),
    olmo_with_experts("flex_olmo", true),
    glm4_moe(),
    deepseek("glm4_moe_lite", read_deepseek_v3_experts),
    gpt_oss(),
    with_experts("granitemoe", BiasKey::qkv_and_output, read_granite_experts),
    with_experts("granitemoeshared", BiasKey::qkv_and_output, read_granite_experts),
    with_head_norms("hunyuan_v1_moe", read_hunyuan_experts),
    hy_v3(),
    deepseek("kimi_k2", read_deepseek_v3_experts),
    llama4_text(),
    minimax_m2(),
    mixtral(),
    olmo_with_experts("olmoe", false),
    phimoe(),
    qwen2_moe(),
    with_head_norms("qwen3_moe", read_qwen_experts),
    solar_open(),
};

}  // namespace

std::span<const HfFamily> hf_expert_families() {
  return families_of_experts;
}

}  // namespace zeroplan
