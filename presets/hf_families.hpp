#pragma once
// The families of decoders that can be read: what a layer is made of beyond the sizes in the file.
// Private to this room.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "cost_model/question/model.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {

using KeyNames = std::initializer_list<std::string_view>;

inline constexpr Range any_size{1, std::int64_t{1} << 31};
inline constexpr Range any_layers{1, 4'000};  // the deepest published has 1,000
inline constexpr Range any_heads{1, 65'536};
inline constexpr Range any_experts{1, 65'536};

/// A size under the first of `keys` that is present. Throws InputError naming them when none is.
std::int64_t read_size(const JsonObject& config, KeyNames keys, Range allowed);
std::optional<std::int64_t> find_size(const JsonObject& config, KeyNames keys, Range allowed);

/// What the key `attention_bias` switches on or off.
enum class BiasKey { nothing, qkv, qkv_and_output };

/// One `model_type`: what its transformers class builds when the file does not say otherwise.
struct HfFamily {
  std::string_view model_type;

  Norm norm = Norm::rms;
  std::int64_t norms_per_layer = 2;
  bool norms_after = false;
  bool parallel_residual = false;

  bool qkv_bias = false;
  bool output_bias = false;
  BiasKey attention_bias = BiasKey::nothing;
  bool qk_norm = false;
  bool joint_qk_norm = false;
  bool head_dim_in_file = false;  // the class default is a constant, so the file must say
  bool kv_heads_in_file = false;  // the file must say; else absent means one for each query head
  bool latent_attention = false;  // MLA
  bool lists_layers = false;      // each by its kind; the file need not say their number
  // One of so many layers sees all keys where the file gives a window; 0: none does.
  std::int64_t window_every = 0;

  bool gated_mlp = true;
  bool mlp_bias = false;
  bool mlp_four_times_hidden = false;  // when the file gives no width
  std::optional<std::int64_t>
      first_position_row{};  // learned positions, their table this much longer

  bool tied_embeddings = false;
  bool head_bias = false;

  void (*read_experts)(const JsonObject&, ModelSpec&) = nullptr;  // fills moe, layer_kinds and mlp
  void (*read_quirks)(const JsonObject&,
                      ModelSpec&) = nullptr;  // last: whatever no field above says
};

/// Every supported family, sorted by model_type.
std::span<const HfFamily> hf_families();

/// Those whose layers have experts and attention (hf_expert_families.cpp).
std::span<const HfFamily> hf_expert_families();

// Readers of each manner of writing experts down (hf_experts.cpp).
void read_mixtral_experts(const JsonObject& config, ModelSpec& model);
void read_gpt_oss_experts(const JsonObject& config, ModelSpec& model);
void read_minimax_experts(const JsonObject& config, ModelSpec& model);
void read_qwen_experts(const JsonObject& config, ModelSpec& model);
void read_qwen2_experts(const JsonObject& config, ModelSpec& model);
void read_deepseek_v2_experts(const JsonObject& config, ModelSpec& model);
void read_deepseek_v3_experts(const JsonObject& config, ModelSpec& model);
void read_solar_experts(const JsonObject& config, ModelSpec& model);
void read_ernie_experts(const JsonObject& config, ModelSpec& model);
void read_afmoe_experts(const JsonObject& config, ModelSpec& model);
void read_granite_experts(const JsonObject& config, ModelSpec& model);
void read_hunyuan_experts(const JsonObject& config, ModelSpec& model);
void read_llama4_experts(const JsonObject& config, ModelSpec& model);
void read_nemotron_h_experts(const JsonObject& config, ModelSpec& model);

}  // namespace zeroplan
