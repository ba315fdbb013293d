// Which model does a config.json describe? Front door: read_hf_config.
#include "presets/hf_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "presets/foreign_config.hpp"
#include "presets/hf_families.hpp"
#include "presets/hf_hybrids.hpp"
#include "presets/hf_import.hpp"
#include "presets/nearest_name.hpp"
#include "presets/python_numbers.hpp"

namespace zeroplan {
namespace {

const KeyNames hidden_keys{"hidden_size", "n_embd", "d_model", "n_embed"};
const KeyNames layer_keys{"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
const KeyNames head_keys{"num_attention_heads", "n_head", "n_heads", "num_heads"};
const KeyNames kv_head_keys{"num_key_value_heads", "num_kv_heads", "n_head_kv"};
const KeyNames mlp_keys{"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"};
const KeyNames position_keys{"max_position_embeddings", "n_positions", "n_ctx", "seq_length",
                             "max_seq_len"};

using Named = std::pair<std::string_view, std::string_view>;

/// Multimodal wrappers and the text model inside when their text_config does not say.
constexpr Named wrappers[] = {
    {"gemma3", "gemma3_text"},         {"glm4v_moe", "glm4v_moe_text"},
    {"llama4", "llama4_text"},         {"mistral3", "mistral"},
    {"qwen2_5_vl", "qwen2_5_vl_text"}, {"qwen2_vl", "qwen2_vl_text"},
    {"qwen3_5", "qwen3_5_text"},       {"qwen3_5_moe", "qwen3_5_moe_text"},
    {"qwen3_vl", "qwen3_vl_text"},     {"qwen3_vl_moe", "qwen3_vl_moe_text"}};

/// Text models whose layers are those of another family.
constexpr Named namesakes[] = {{"glm4v_moe_text", "glm4_moe"},
                               {"qwen2_5_omni_text", "qwen2"},
                               {"qwen2_5_vl_text", "qwen2"},
                               {"qwen2_vl_text", "qwen2"},
                               {"qwen3_omni_moe_text", "qwen3_moe"},
                               {"qwen3_vl_moe_text", "qwen3_moe"},
                               {"qwen3_vl_text", "qwen3"}};

std::string_view second_of(std::span<const Named> list, std::string_view first) {
  const auto found = std::ranges::find(list, first, &Named::first);
  return found == list.end() ? std::string_view{} : found->second;
}

const HfFamily* find_family(std::string_view model_type) {
  const std::string_view other = second_of(namesakes, model_type);
  const auto all = hf_families();
  const auto found =
      std::ranges::find(all, other.empty() ? model_type : other, &HfFamily::model_type);
  return found == all.end() ? nullptr : &*found;
}

std::string_view wrapped_type(std::string_view model_type) {
  return second_of(wrappers, model_type);
}

// A decoder of llama's kind whatever its name: grouped heads, root mean square norms, rotary
// positions and a gated MLP, and nothing that llama does not have.
bool has_keys_of_llama(const JsonObject& config) {
  const std::string_view rotary[] = {"rope_theta", "rope_scaling", "rope_parameters"};
  const auto own = config.find_string("hidden_act");
  const auto activation = own ? own : config.find_string("hidden_activation");
  return config.has("num_key_value_heads") && config.has("rms_norm_eps") &&
         config.has("intermediate_size") && config.first_of(rotary) &&
         (!activation || *activation == "silu");
}

const HfFamily& family_of(const JsonObject& config, std::string_view as, Notes& notes) {
  const std::string own = config.find_string("model_type").value_or("");
  const std::string model_type = as.empty() ? own : std::string(as);
  if (const HfFamily* family = find_family(model_type)) {
    if (model_type != own) {
      notes.push_back(fmt::format("model_type {} is read as {} (--as)", in_quotes(own), as));
    }
    return *family;
  }
  const std::vector<std::string> known = supported_model_types();
  const std::string meant = near_name(model_type, known);
  const std::string nearest = meant.empty() ? "" : fmt::format(", nearest is '{}'", meant);
  if (!as.empty()) {
    config.fail(fmt::format("--as {}: must be one of {}{}", in_quotes(as), fmt::join(known, ", "),
                            nearest));
  }
  const std::string other = what_is_not_modelled(config);
  if (!other.empty()) {
    config.fail(own.empty() ? fmt::format("'model_type' is missing, and the model {}", other)
                            : fmt::format("model_type {} {}", in_quotes(own), other));
  }
  if (has_keys_of_llama(config)) {
    notes.push_back(own.empty()
                        ? "'model_type' is missing: read as llama, whose keys the file has (--as)"
                        : fmt::format("model_type {} is not known: read as llama, whose keys the "
                                      "file has (--as)",
                                      in_quotes(own)));
    return *find_family("llama");
  }
  if (own.empty()) {
    config.fail(fmt::format("'model_type' is missing; supported are {}; --as llama reads it as one",
                            fmt::join(known, ", ")));
  }
  config.fail(fmt::format(
      "model_type {} is not supported{}; supporting it takes the attention, MLP and norm layout of "
      "its layers; --as llama reads it as another",
      in_quotes(own), nearest));
}

std::int64_t head_dim_of(const JsonObject& config, const HfFamily& family, const ModelSpec& model) {
  const auto given = find_size(config, {"head_dim"}, any_size);
  if (given) return *given;
  if (family.head_dim_in_file) {
    config.fail(fmt::format("no size 'head_dim', which {} needs", family.model_type));
  }
  const std::int64_t heads = model.attention.heads;
  if (model.hidden_size % heads != 0) {
    std::int64_t legal = heads;
    while (model.hidden_size % legal != 0) --legal;
    config.fail(
        fmt::format("hidden size {} is not a multiple of {} attention heads and there is no "
                    "'head_dim'; {} heads "
                    "divide it",
                    model.hidden_size, heads, legal));
  }
  return model.hidden_size / heads;
}

void read_grouped_attention(const JsonObject& config, const HfFamily& family, ModelSpec& model) {
  AttentionSpec& attention = model.attention;
  attention.head_dim = head_dim_of(config, family, model);
  attention.qk_norm = family.qk_norm;
  attention.joint_qk_norm = family.joint_qk_norm;
  if (family.kv_heads_in_file) {
    attention.kv_heads = read_size(config, kv_head_keys, any_heads);
  } else {
    attention.kv_heads = find_size(config, kv_head_keys, any_heads).value_or(attention.heads);
  }
  if (attention.heads % attention.kv_heads != 0) {
    config.fail(fmt::format("{} key-value heads do not divide {} attention heads",
                            attention.kv_heads, attention.heads));
  }
}

void read_latent_attention(const JsonObject& config, ModelSpec& model) {
  if (!config.value().contains("q_lora_rank")) {
    config.fail("no 'q_lora_rank' (null: queries are projected directly)");
  }
  MlaSpec mla;
  mla.q_lora_rank = find_size(config, {"q_lora_rank"}, any_size).value_or(0);
  mla.kv_lora_rank = read_size(config, {"kv_lora_rank"}, any_size);
  mla.qk_nope_head_dim = read_size(config, {"qk_nope_head_dim"}, any_size);
  mla.qk_rope_head_dim = read_size(config, {"qk_rope_head_dim"}, any_size);
  mla.v_head_dim = read_size(config, {"v_head_dim"}, any_size);
  model.attention.kv_heads = model.attention.heads;
  model.attention.mla = mla;
}

// How many layers see a window alone: as the file lists them, or as its family counts.
std::int64_t windowed_layers(const JsonObject& config, const HfFamily& family, std::int64_t all) {
  if (config.has("layer_types")) {
    const std::vector<std::string> types = config.strings("layer_types");
    return std::min<std::int64_t>(all, std::ranges::count(types, "sliding_attention"));
  }
  // Qwen's first layers see everything.
  const auto whole = config.find_integer("max_window_layers", {0, any_layers.most});
  if (whole) return std::max<std::int64_t>(0, all - *whole);
  const std::int64_t every =
      find_size(config, {"sliding_window_pattern", "global_attn_every_n_layers"}, any_layers)
          .value_or(family.window_every);
  return every == 0 ? all : all - all / every;
}

void read_window(const JsonObject& config, const HfFamily& family, ModelSpec& model) {
  // A file that transformers 5 wrote says 0 where there is none.
  const auto window = find_size(config, {"sliding_window"}, {0, any_size.most});
  if (window.value_or(0) == 0 || !config.find_boolean("use_sliding_window").value_or(true)) return;
  model.attention.windowed_layers = windowed_layers(config, family, model.layers);
  if (model.attention.windowed_layers > 0) model.attention.sliding_window = *window;
}

void read_mlp(const JsonObject& config, const HfFamily& family, ModelSpec& model) {
  model.mlp.gated = family.gated_mlp;
  model.mlp.bias = family.mlp_bias;
  if (family.read_experts != nullptr) return;  // which know what the dense layers are
  const auto width = find_size(config, mlp_keys, any_size);
  if (!width && !family.mlp_four_times_hidden) read_size(config, mlp_keys, any_size);  // fails
  model.mlp.intermediate_size = width.value_or(4 * model.hidden_size);
}

void read_embeddings(const JsonObject& config, const HfFamily& family, ModelSpec& model) {
  model.vocab_size = read_size(config, {"vocab_size"}, any_size);
  model.max_position_embeddings = find_size(config, position_keys, any_size).value_or(0);
  if (family.first_position_row) {
    model.learned_positions =
        read_size(config, position_keys, any_size) + *family.first_position_row;
  }
  model.tied_embeddings =
      config.find_boolean("tie_word_embeddings").value_or(family.tied_embeddings);
  model.head_bias = family.head_bias;
}

ModelSpec read_model(const JsonObject& config, const HfFamily& family) {
  ModelSpec model;
  model.family = family.model_type;
  model.hidden_size = read_size(config, hidden_keys, any_size);
  model.layers = family.lists_layers && !find_size(config, layer_keys, any_layers)
                     ? listed_layers(config)
                     : read_size(config, layer_keys, any_layers);
  model.norm = family.norm;
  model.norms_per_layer = family.norms_per_layer;
  model.norms_after = family.norms_after;
  model.parallel_residual = family.parallel_residual;

  AttentionSpec& attention = model.attention;
  attention.heads = read_size(config, head_keys, any_heads);
  const auto bias = family.attention_bias == BiasKey::nothing
                        ? std::nullopt
                        : config.find_boolean("attention_bias");
  attention.qkv_bias = bias.value_or(family.qkv_bias);
  attention.output_bias = family.attention_bias == BiasKey::qkv_and_output
                              ? bias.value_or(family.output_bias)
                              : family.output_bias;
  if (family.latent_attention) {
    read_latent_attention(config, model);
  } else {
    read_grouped_attention(config, family, model);
  }
  read_window(config, family, model);
  read_mlp(config, family, model);
  read_embeddings(config, family, model);
  if (family.read_experts != nullptr) family.read_experts(config, model);
  if (family.read_quirks != nullptr) family.read_quirks(config, model);
  if (model.head_bias && model.tied_embeddings) {
    config.fail("'tie_word_embeddings' must be false: a tied head with a bias is not modelled");
  }
  check_size(config, model);
  return model;
}

void note_assumptions(const JsonObject& config, const ModelSpec& model, Notes& notes) {
  if (!config.has("tie_word_embeddings")) {
    notes.push_back(fmt::format("tie_word_embeddings is not given: {}, as {} is by default",
                                model.tied_embeddings ? "tied" : "not tied", model.family));
  }
  if (config.has("quantization_config")) {
    notes.push_back("weights are trained in --precision, the checkpoint's quantization is ignored");
  }
  if (config.has("attention_chunk_size")) {
    notes.push_back("attention in chunks is timed as full attention");
  }
  const AttentionSpec& a = model.attention;
  if (a.windowed_layers > 0) {
    notes.push_back(fmt::format(
        "{} of {} layers see the last {} keys alone, which Transformer Engine's kernels "
        "use; other runtimes compute what lies outside too",
        a.windowed_layers, model.layers, a.sliding_window));
  }
}

/// The text model of a multimodal file, with what the wrapper says for both. Qwen2-VL's first files
/// have it beside the vision tower.
nlohmann::json text_config_of(const JsonObject& config, std::string_view model_type) {
  const bool apart = config.has("text_config") || !config.has("vision_config");
  nlohmann::json text = apart ? config.object("text_config").value() : config.value();
  if (!apart || !text.contains("model_type")) text["model_type"] = wrapped_type(model_type);
  if (!apart) text.erase("vision_config");
  // The wrapper has the head, and ties it or not (transformers v5.24.0, also where the text says
  // otherwise).
  for (const char* key : {"tie_word_embeddings", "quantization_config"}) {
    if (config.has(key)) text[key] = config.value().at(key);
  }
  return text;
}

}  // namespace

std::int64_t read_size(const JsonObject& config, KeyNames keys, Range allowed) {
  const auto value = find_size(config, keys, allowed);
  if (value) return *value;
  if (keys.size() == 1) config.fail(fmt::format("no size '{}'", *keys.begin()));
  config.fail(fmt::format("no size '{}'; one of {} is needed", *keys.begin(),
                          fmt::join(keys.begin(), keys.end(), ", ")));
}

std::optional<std::int64_t> find_size(const JsonObject& config, KeyNames keys, Range allowed) {
  const auto key = config.first_of({keys.begin(), keys.size()});
  return key ? config.find_integer(*key, allowed) : std::nullopt;
}

std::vector<std::string> supported_model_types() {
  std::vector<std::string> out;
  for (const HfFamily& family : hf_families()) out.emplace_back(family.model_type);
  for (const auto& [wrapper, text_type] : wrappers) out.emplace_back(wrapper);
  std::sort(out.begin(), out.end());
  return out;
}

ModelSpec import_hf_config(const JsonObject& config, Notes& notes, std::string_view as) {
  if (const auto same = as_hugging_face(config, notes)) {
    return import_hf_config(JsonObject(*same, config.where()), notes, as);
  }
  const std::string model_type = config.find_string("model_type").value_or("");
  if (model_type == megatron_model_type) return import_megatron_model(config);
  const bool wrapper = !wrapped_type(model_type).empty();
  if (wrapper || (find_family(model_type) == nullptr && config.has("text_config"))) {
    const nlohmann::json text = text_config_of(config, model_type);
    notes.push_back("only the text model is counted, not the vision tower (vision_config)");
    return import_hf_config(JsonObject(text, config.where() + ": text_config"), notes, as);
  }
  const HfFamily& family = family_of(config, as, notes);
  if (family.read_experts == nullptr && as.empty()) {
    for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
      if (config.find_integer(key, {0, any_experts.most}).value_or(0) < 2) continue;
      config.fail(fmt::format("'{}': {} has no experts; --as mixtral or qwen3_moe reads it as one",
                              key, family.model_type));
    }
  }
  ModelSpec model = read_model(config, family);
  if (config.has("vision_config")) {
    notes.push_back("only the text model is counted, not the vision tower (vision_config)");
  }
  note_assumptions(config, model, notes);
  return model;
}

ModelSpec read_hf_config(std::string_view json_text,
                         std::string_view where,
                         std::vector<std::string>* assumptions,
                         std::string_view as) {
  const nlohmann::json document = parse_json(without_infinities(json_text), where);
  Notes notes;
  ModelSpec model = import_hf_config(JsonObject(document, std::string(where)), notes, as);
  if (assumptions != nullptr) {
    assumptions->insert(assumptions->end(), notes.begin(), notes.end());
  }
  return model;
}

}  // namespace zeroplan
