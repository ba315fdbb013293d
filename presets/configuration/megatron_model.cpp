// How does Megatron-LM say a model? Front door: add_megatron_model.
#include "presets/configuration/megatron_model.hpp"

#include <fmt/format.h>

namespace zeroplan {
namespace {

// Runs of layers as --moe-layer-freq takes them: ([0]*3+[1]*58).
std::string layer_pattern(const ModelSpec& model) {
  std::string text;
  for (std::int64_t first = 0; first < model.layers;) {
    const LayerKind kind = kind_of(model, first);
    std::int64_t last = first;
    while (last < model.layers && kind_of(model, last) == kind) ++last;
    text += fmt::format("{}[{}]*{}", text.empty() ? "" : "+", kind == LayerKind::moe ? 1 : 0,
                        last - first);
    first = last;
  }
  return "(" + text + ")";
}

void add_attention(std::vector<Entry>& out, const AttentionSpec& a) {
  out.push_back({"num-attention-heads", a.heads});
  if (a.mla) {
    out.push_back({"multi-latent-attention", nullptr});
    if (a.mla->q_lora_rank > 0) out.push_back({"q-lora-rank", a.mla->q_lora_rank});
    out.push_back({"kv-lora-rank", a.mla->kv_lora_rank});
    out.push_back({"qk-head-dim", a.mla->qk_nope_head_dim});
    out.push_back({"qk-pos-emb-head-dim", a.mla->qk_rope_head_dim});
    out.push_back({"v-head-dim", a.mla->v_head_dim});
  } else {
    if (a.kv_heads != a.heads) {
      out.push_back({"group-query-attention", nullptr});
      out.push_back({"num-query-groups", a.kv_heads});
    }
    out.push_back({"kv-channels", a.head_dim});
  }
  // With latent attention the norms of both latents go by the same name.
  if (a.qk_norm || a.mla) out.push_back({"qk-layernorm", nullptr});
}

void add_experts(std::vector<Entry>& out, const ModelSpec& model) {
  const MoeSpec& moe = *model.moe;
  out.push_back({"num-experts", moe.experts});
  out.push_back({"moe-router-topk", moe.experts_per_token});
  out.push_back({"moe-ffn-hidden-size", moe.intermediate_size});
  if (moe.shared_intermediate_size > 0) {
    out.push_back({"moe-shared-expert-intermediate-size", moe.shared_intermediate_size});
  }
  if (layers_of_kind(model, 0, model.layers, LayerKind::dense) > 0) {
    out.push_back({"moe-layer-freq", layer_pattern(model)});
  }
}

}  // namespace

void add_megatron_model(std::vector<Entry>& out, const ModelSpec& model) {
  out.push_back({"num-layers", model.layers});
  out.push_back({"hidden-size", model.hidden_size});
  if (model.mlp.intermediate_size > 0) {
    out.push_back({"ffn-hidden-size", model.mlp.intermediate_size});
  }
  add_attention(out, model.attention);
  out.push_back({"vocab-size", model.vocab_size});
  out.push_back(
      {"position-embedding-type", model.learned_positions > 0 ? "learned_absolute" : "rope"});
  out.push_back({"normalization", model.norm == Norm::rms ? "RMSNorm" : "LayerNorm"});
  const bool gated = model.moe ? model.moe->gated : model.mlp.gated;
  if (gated) out.push_back({"swiglu", nullptr});
  if (!model.mlp.bias) out.push_back({"disable-bias-linear", nullptr});
  if (model.attention.qkv_bias && !model.mlp.bias) out.push_back({"add-qkv-bias", nullptr});
  if (!model.tied_embeddings) out.push_back({"untie-embeddings-and-output-weights", nullptr});
  if (model.moe) add_experts(out, model);
}

std::vector<std::string> take_megatron_model(Entries& entries) {
  return entries.take_all({"num-layers",
                           "hidden-size",
                           "ffn-hidden-size",
                           "num-attention-heads",
                           "multi-latent-attention",
                           "q-lora-rank",
                           "kv-lora-rank",
                           "qk-head-dim",
                           "qk-pos-emb-head-dim",
                           "v-head-dim",
                           "group-query-attention",
                           "num-query-groups",
                           "kv-channels",
                           "qk-layernorm",
                           "vocab-size",
                           "position-embedding-type",
                           "normalization",
                           "swiglu",
                           "disable-bias-linear",
                           "add-qkv-bias",
                           "untie-embeddings-and-output-weights",
                           "num-experts",
                           "moe-router-topk",
                           "moe-ffn-hidden-size",
                           "moe-shared-expert-intermediate-size",
                           "moe-layer-freq",
                           "max-position-embeddings"});
}

}  // namespace zeroplan
