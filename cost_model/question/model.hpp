#pragma once
// What is trained: the shape of a decoder, as much of it as memory, traffic and time depend on.
// Fields keep their Hugging Face `config.json` names without `num_`.

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost_model/question/layer_kind.hpp"

namespace zeroplan {

enum class Norm { rms, layer };  // `layer` may have a bias, `rms` has none

/// Multi-head latent attention (DeepSeek-V2, section 2.1): queries, keys and values come from small
/// latents.
struct MlaSpec {
  std::int64_t q_lora_rank = 0;  // 0: queries are projected directly
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
  friend bool operator==(const MlaSpec&, const MlaSpec&) = default;
};

struct AttentionSpec {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  // unused with MLA, whose heads have three widths
  bool qkv_bias = false;
  bool output_bias = false;
  bool rotary = true;          // where no positions are learned, queries and keys are turned
  bool qk_norm = false;        // one weight vector of head_dim for queries, one for keys
  bool joint_qk_norm = false;  // those are of all heads at once, and as wide (OLMo 2, MiniMax-M2)
  bool plain_qk_norm = false;  // norms without weights, of queries and keys that are turned
  bool sinks = false;          // one learned logit a head (gpt-oss)
  bool output_gate = false;    // a sigmoid of as many features as the queries' (Qwen3-Next)
  bool yarn = false;  // rotation also scales queries and keys (Peng et al. 2023, section 3.4)
  std::int64_t sliding_window = 0;   // keys that a query of a windowed layer sees; 0: no such layer
  std::int64_t windowed_layers = 0;  // of the model's
  std::optional<MlaSpec> mla;
  friend bool operator==(const AttentionSpec&, const AttentionSpec&) = default;
};

/// Attention by a gated delta rule (Yang et al. 2024, arXiv 2412.06464), which keeps a state a head
/// instead of comparing all keys: Qwen3-Next, Qwen3.5.
struct LinearAttentionSpec {
  std::int64_t key_heads = 0;    // of queries too
  std::int64_t value_heads = 0;  // some for each of the keys
  std::int64_t key_head_dim = 0;
  std::int64_t value_head_dim = 0;
  std::int64_t convolution = 0;     // tokens that a channel of queries, keys and values is mixed of
  bool joined_projections = false;  // queries, keys, values and gate are one; so are both rates
  std::int64_t keys() const { return key_heads * key_head_dim; }
  std::int64_t values() const { return value_heads * value_head_dim; }
  /// Channels that are convolved.
  std::int64_t mixed() const { return 2 * keys() + values(); }
  friend bool operator==(const LinearAttentionSpec&, const LinearAttentionSpec&) = default;
};

/// A mixer that keeps a state a head: Mamba-2's (Dao and Gu 2024, arXiv 2405.21060), as Bamba's.
struct StateSpaceSpec {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t groups = 0;       // of heads that read and write the state alike
  std::int64_t state = 0;        // what a feature of a head is remembered in
  std::int64_t convolution = 0;  // tokens that a channel is mixed of
  std::int64_t chunk = 0;        // tokens within which all pairs are compared
  bool convolution_bias = true;
  bool bias = false;  // of both projections
  std::int64_t features() const { return heads * head_dim; }
  /// Channels that are convolved: features, and what each group writes and reads by.
  std::int64_t mixed() const { return features() + 2 * groups * state; }
  /// What one projection makes: the gate, what is convolved, and a time step a head.
  std::int64_t projected() const { return features() + mixed() + heads; }
  friend bool operator==(const StateSpaceSpec&, const StateSpaceSpec&) = default;
};

struct MlpSpec {
  std::int64_t intermediate_size = 0;
  bool gated = false;  // SwiGLU, GeGLU: two input projections
  bool bias = false;
  bool squared_relu = false;  // instead of GELU, where it is not gated (So et al. 2021, Primer)
  friend bool operator==(const MlpSpec&, const MlpSpec&) = default;
};

struct MoeSpec {
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t router_groups = 1;             // of neighbouring experts, as many in each
  std::int64_t groups_per_token = 1;          // of these, that a token's experts may lie in
  std::int64_t intermediate_size = 0;         // of one routed expert
  std::int64_t shared_intermediate_size = 0;  // of all shared experts together; 0: none
  std::int64_t latent_size = 0;  // features that routed experts read and give; 0: the stream's
  bool gated = true;
  bool expert_bias = false;
  bool clamped = false;             // what the gated activation reads is bounded (gpt-oss)
  bool router_bias = false;         // one value an expert, learned or adjusted (DeepSeek-V3)
  bool shared_expert_gate = false;  // hidden-to-1 gate on the shared expert (Qwen2-MoE)
  friend bool operator==(const MoeSpec&, const MoeSpec&) = default;
};

struct ModelSpec {
  std::string name;
  std::string family;  // Hugging Face `model_type`
  std::int64_t layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;  // 0: the configuration does not say

  AttentionSpec attention;
  std::optional<LinearAttentionSpec> linear_attention;  // of the layers that have it
  std::optional<StateSpaceSpec> state_space;            // or this
  MlpSpec mlp;                                          // of the dense layers
  std::optional<MoeSpec> moe;                           // of the MoE layers
  std::vector<LayerKind>
      layer_kinds;  // one a layer; empty: all `moe` if there are experts, else all `dense`

  Norm norm = Norm::rms;
  bool norm_bias = true;             // of norms that may have one (Cohere's have none)
  std::int64_t norms_per_layer = 2;  // 1: attention and MLP share it; 4: one before and after each
  bool norms_after = false;          // both norm what a half gives, and none what it reads (OLMo 2)
  bool final_norm = true;
  bool embedding_norm = false;
  bool parallel_residual = false;      // attention and MLP read the same input
  std::int64_t learned_positions = 0;  // rows of the position table; 0: rotary or ALiBi
  std::int64_t embedding_size =
      0;                         // narrower word embeddings, projected in and out; 0: hidden_size
  bool tied_embeddings = false;  // the head is the transposed word embedding
  bool head_bias = false;
  std::int64_t mtp_layers = 0;       // multi-token-prediction modules the checkpoint carries
  std::vector<LayerKind> mtp_kinds;  // of one module's layers; empty: one of the model's last kind

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// Whether queries and keys are turned by their positions.
inline bool turns_heads(const ModelSpec& model) {
  return model.learned_positions == 0 && model.attention.rotary;
}

/// Whether some layers keep a state instead of comparing all keys.
inline bool keeps_states(const ModelSpec& model) {
  return model.linear_attention || model.state_space;
}

inline bool has_norm_bias(const ModelSpec& model) {
  return model.norm == Norm::layer && model.norm_bias;
}

/// Norms of a layer of this kind.
inline std::int64_t norms_of(const ModelSpec& model, LayerKind kind) {
  return model.norms_per_layer / (has_both_halves(kind) ? 1 : 2);
}

/// Features that routed experts read and give: a latent's, or the stream's.
inline std::int64_t routed_width(const ModelSpec& model) {
  return model.moe && model.moe->latent_size > 0 ? model.moe->latent_size : model.hidden_size;
}

/// As users read it: "state-space layer".
std::string_view layer_name(const ModelSpec& model, LayerKind kind);

/// What layer `layer` (from 0) is.
LayerKind kind_of(const ModelSpec& model, std::int64_t layer);

using LayerKinds = boost::container::small_vector<LayerKind, 4>;
/// What the layers of a multi-token-prediction module are; assumes a model with layers.
LayerKinds kinds_of_mtp_module(const ModelSpec& model);

/// Whether the queries of layer `layer` see a window alone. Those that see all keys stand at even
/// distances, the last of so many layers each: as Gemma's, gpt-oss's and Mistral's files list them.
bool is_windowed(const ModelSpec& model, std::int64_t layer);

/// How many of the layers [first, last) are of a kind.
std::int64_t layers_of_kind(const ModelSpec& model,
                            std::int64_t first,
                            std::int64_t last,
                            LayerKind kind);

/// How many of the layers [first, last) are of each kind.
ByKind<std::int64_t> layers_by_kind(const ModelSpec& model, std::int64_t first, std::int64_t last);

/// How many of the layers [first, last) have experts.
std::int64_t layers_with_experts(const ModelSpec& model, std::int64_t first, std::int64_t last);

/// Whether any layer is of this kind.
inline bool has_kind(const ModelSpec& model, LayerKind kind) {
  return layers_of_kind(model, 0, model.layers, kind) > 0;
}

/// The kinds of its layers, those of multi-token-prediction modules among them, in their order.
LayerKinds used_kinds(const ModelSpec& model);

/// Width of all query heads together (per token): heads x head_dim, or x (nope + rope) with MLA.
std::int64_t query_width(const AttentionSpec& attention);

/// Width of the attention output before its projection: heads x head_dim, or x v_head_dim with MLA.
std::int64_t attention_output_width(const AttentionSpec& attention);

}  // namespace zeroplan
