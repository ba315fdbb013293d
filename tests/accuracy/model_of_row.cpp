// Which decoder was trained? Front door: model_of.
#include <fmt/format.h>

#include <algorithm>

#include "cost_model/question/units.hpp"
#include "presets/configuration.hpp"
#include "presets/hf_config.hpp"
#include "tests/accuracy/problem_of_row.hpp"

namespace zeroplan::accuracy {
namespace {

// Where a row does not name its norm: gated models come with RMSNorm, plain ones with LayerNorm,
// and those trained without any bias have norms without bias too. It is a vector a layer.
Norm norm_of(const ModelShape& shape, bool gated) {
  if (shape.norm) return *shape.norm == "RMSNorm" ? Norm::rms : Norm::layer;
  return gated || shape.bias == false ? Norm::rms : Norm::layer;
}

AttentionSpec attention_of(const Row& row, bool bias) {
  const ModelShape& shape = row.model;
  AttentionSpec attention{.heads = required(shape.heads),
                          .kv_heads = required(shape.kv_heads),
                          .qkv_bias = bias || shape.qkv_bias || row.has_argument("add-qkv-bias"),
                          .output_bias = bias,
                          .qk_norm = shape.qk_norm || row.has_argument("qk-layernorm"),
                          .mla = shape.latent};
  if (attention.heads < 1) throw Skip(incomplete);
  attention.head_dim = shape.head_dim.value_or(required(shape.hidden) / attention.heads);
  return attention;
}

MoeSpec experts_of(const ExpertShape& shape, bool gated, bool bias) {
  return {.experts = required(shape.experts),
          .experts_per_token = required(shape.topk),
          .intermediate_size = required(shape.ffn),
          .shared_intermediate_size = shape.shared_ffn,
          .gated = gated,
          .expert_bias = bias};
}

void add_experts(const ModelShape& shape, bool gated, bool bias, ModelSpec& model) {
  if (!shape.experts) return;
  if (!shape.experts->every_layer && !shape.experts->dense_layers) throw Skip(incomplete);
  model.moe = experts_of(*shape.experts, gated, bias);
  const std::int64_t dense = shape.experts->dense_layers.value_or(0);
  if (dense < 0 || dense > model.layers) throw Skip(incomplete);
  model.layer_kinds.assign(static_cast<std::size_t>(model.layers), LayerKind::moe);
  std::fill_n(model.layer_kinds.begin(), dense, LayerKind::dense);
}

// Rows of the embedding. At adc69dba2d NullTokenizer adds one id to --vocab-size, which rows of
// that commit do not count; later it does not.
std::int64_t vocabulary_of(const Row& row) {
  const ModelShape& shape = row.model;
  const bool one_more = row.argument("tokenizer-type", "") == "NullTokenizer" &&
                        row.version.find("adc69dba2d") != std::string::npos;
  if (one_more) return round_up(required(shape.vocab) + 1, 128 * required(row.tp));
  return required(shape.padded_vocab ? shape.padded_vocab : shape.vocab);
}

// Layers of one half each are said by the launch arguments alone; the vocabulary is the row's.
ModelSpec hybrid_of(const Row& row) {
  std::string arguments = fmt::format("--vocab-size {}\n", vocabulary_of(row));
  for (const auto& [key, value] : row.arguments) {
    arguments +=
        value == "true" ? fmt::format("--{}\n", key) : fmt::format("--{} {}\n", key, value);
  }
  return read_hf_config(import_configuration(arguments, row.id).model_config, row.id, nullptr);
}

}  // namespace

ModelSpec model_of(const Row& row) {
  const ModelShape& shape = row.model;
  if (!shape.config.empty()) {
    ModelSpec model = read_hf_config(shape.config, row.id, nullptr);
    model.name = shape.name;
    return model;
  }
  if (is_hybrid(row)) return hybrid_of(row);
  const bool gated = required(shape.gated);
  // Rows of gpt-oss leave out that its published configuration has biases in all linears, bounds
  // what its activation reads, and scales with its rotation. NVIDIA's runs have these models as
  // published (NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/models/gpt_oss/gpt_oss_provider.py,
  // deepseek/deepseek_provider.py @066adea0).
  const bool gpt_oss = shape.name.find("gpt-oss") != std::string::npos;
  const bool bias = shape.bias.value_or(!gated || gpt_oss);
  ModelSpec model{.name = shape.name, .family = shape.family, .layers = required(shape.layers)};
  if (model.layers < 1) throw Skip(incomplete);
  model.hidden_size = required(shape.hidden);
  model.vocab_size = vocabulary_of(row);
  model.max_position_embeddings = shape.max_positions.value_or(0);
  if (shape.learned_positions.value_or(false)) {
    model.learned_positions = required(shape.max_positions);
  }
  model.attention = attention_of(row, bias);
  model.mlp = {.intermediate_size = required(shape.ffn), .gated = gated, .bias = bias};
  add_experts(shape, gated, bias, model);
  model.attention.yarn = gpt_oss;
  if (model.moe) model.moe->clamped = gpt_oss;
  // Every other layer of gpt-oss has a window.
  if (gpt_oss) {
    model.attention.sliding_window = 128;
    model.attention.windowed_layers = model.layers / 2;
  }
  // A token of DeepSeek-V3 goes to 4 of 8 groups of its experts.
  if (model.moe && shape.name.starts_with("deepseek-v3")) {
    model.moe->router_groups = 8;
    model.moe->groups_per_token = 4;
  }
  model.norm = norm_of(shape, gated);
  model.embedding_norm = shape.embedding_norm;
  model.parallel_residual = shape.parallel_attention;
  model.tied_embeddings = required(shape.tied);
  return model;
}

}  // namespace zeroplan::accuracy
