// What do other programs' model configurations say, and which have layers that are not modelled?
// Front doors: as_hugging_face, what_is_not_modelled.
#include "presets/foreign_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "presets/hf_families.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

// Parts of keys, and what they tell of.
struct Sign {
  std::string_view part;
  std::string_view meaning;
};
constexpr std::string_view hybrid =
    "has layers of a state space, a convolution or linear attention, which are not modelled";
constexpr std::string_view encoder = "is not a decoder alone, and no other is modelled";
constexpr std::string_view unknown_experts =
    "has experts, laid out in a way that is not known: --as mixtral, qwen3_moe or deepseek_v3 "
    "reads "
    "it as one";
constexpr Sign foreign_signs[] = {
    {"mamba", hybrid},
    {"ssm", hybrid},
    {"state_size", hybrid},
    {"conv_l_cache", hybrid},
    {"conv_kernel", hybrid},
    {"linear_attn", hybrid},
    {"linear_num", hybrid},
    {"linear_key_head", hybrid},
    {"full_attention_interval", hybrid},
    {"hybrid_", hybrid},
    {"attn_layer_period", hybrid},
    {"attn_type_list", hybrid},
    {"lru_width", hybrid},
    {"rwkv", hybrid},
    {"cross_attention", encoder},
    {"decoder_layers", encoder},
    {"type_vocab_size", encoder},
    {"relative_attention_num_buckets", encoder},
    {"per_layer_input", "has embeddings of its own in each layer, which are not modelled"},
    {"num_kv_shared", "has layers that share keys and values, which are not modelled"},
    {"index_topk",
     "chooses the keys that a query sees, which is not modelled: --as deepseek_v3 leaves that out"},
    {"kv_lora_rank", "has latent attention: --as deepseek_v3 reads it as one"},
    {"expert", unknown_experts},
    {"first_k_dense", unknown_experts},
    {"moe_", unknown_experts}};

// Whose files have no key that says so, or such keys as mean less elsewhere.
constexpr Sign foreign_types[] = {
    {"apertus", "has an activation with weights of its own (xIELU), which is not modelled"},
    {"bitnet", "has norms inside attention and MLP, which are not modelled"},
    {"diffllama", "takes the difference of two attentions, which is not modelled"},
    {"falcon_h1", "has attention beside a state space in each layer, which is not modelled"},
    {"gemma4_text", "has heads of other widths in some layers, which are not modelled"},
    {"granite_swa", "has sinks that scale what attention gave, which are not modelled"},
    {"granitemoe_swa", "has sinks that scale what attention gave, which are not modelled"},
    {"longcat_flash",
     "has two attentions and two MLPs a layer and experts of nothing, which are not modelled"},
    {"mimo_v2_flash", "has other numbers of heads in some layers, which are not modelled"},
    {"nanochat", "has norms without weights, which are not modelled"},
    {"olmo", "has norms without weights, which are not modelled"}};

// Whose files need no such key.
constexpr std::string_view encoders[] = {
    "albert",  "bert",    "bart", "deberta", "distilbert", "electra", "mbart",      "modernbert",
    "pegasus", "roberta", "t5",   "umt5",    "vit",        "whisper", "xlm-roberta"};

// Some kinds of attention have keys of their own, which say more.
bool says_other_layers(const JsonObject& config) {
  if (!config.has("layer_types") || !config.value().at("layer_types").is_array()) return false;
  constexpr std::string_view attention[] = {"full_attention",
                                            "sliding_attention",
                                            "chunked_attention",
                                            "attention",
                                            "indexed_attention",
                                            "compressed_sparse_attention",
                                            "heavily_compressed_attention"};
  return std::ranges::any_of(config.value().at("layer_types"), [&](const nlohmann::json& type) {
    return type.is_string() &&
           std::ranges::find(attention, type.get<std::string>()) == std::end(attention);
  });
}

// A switch that is off, a count of none or of one says nothing.
bool is_set(const nlohmann::json& value) {
  if (value.is_null() || value == false) return false;
  return !value.is_number() || value > 1;
}

nlohmann::json from_meta(const JsonObject& config, Notes& notes) {
  const std::int64_t dim = read_size(config, {"dim"}, any_size);
  const std::int64_t layers = read_size(config, {"n_layers"}, any_layers);
  const std::int64_t heads = read_size(config, {"n_heads"}, any_heads);
  const std::int64_t multiple = read_size(config, {"multiple_of"}, any_size);
  const double times = config.find_number("ffn_dim_multiplier", 0.01).value_or(1);
  const double width = std::floor(times * std::floor(2.0 * 4.0 * static_cast<double>(dim) / 3.0));
  const double units = std::ceil(width / static_cast<double>(multiple));
  if (units * static_cast<double>(multiple) > 2e9) config.fail("'ffn_dim_multiplier' is too large");
  notes.emplace_back("Meta's params.json is read as llama");
  return {{"model_type", "llama"},
          {"hidden_size", dim},
          {"intermediate_size", static_cast<std::int64_t>(units) * multiple},
          {"num_hidden_layers", layers},
          {"num_attention_heads", heads},
          {"num_key_value_heads", find_size(config, {"n_kv_heads"}, any_heads).value_or(heads)},
          {"vocab_size", read_size(config, {"vocab_size"}, any_size)},
          {"tie_word_embeddings", false}};
}

nlohmann::json from_nano_gpt(const JsonObject& config, Notes& notes) {
  notes.emplace_back("nanoGPT's configuration is read as gpt2");
  if (!config.find_boolean("bias").value_or(true)) {
    notes.emplace_back("the biases that it leaves out are counted");
  }
  return {{"model_type", "gpt2"},
          {"n_embd", read_size(config, {"n_embd"}, any_size)},
          {"n_layer", read_size(config, {"n_layer"}, any_layers)},
          {"n_head", read_size(config, {"n_head"}, any_heads)},
          {"n_positions", read_size(config, {"block_size"}, any_size)},
          {"vocab_size", read_size(config, {"vocab_size"}, any_size)},
          {"tie_word_embeddings", true}};
}

}  // namespace

std::optional<nlohmann::json> as_hugging_face(const JsonObject& config, Notes& notes) {
  if (config.has("model_type")) return std::nullopt;
  if (config.has("dim") && config.has("n_layers") && config.has("multiple_of")) {
    return from_meta(config, notes);
  }
  if (config.has("block_size") && config.has("n_layer") && config.has("n_embd")) {
    return from_nano_gpt(config, notes);
  }
  return std::nullopt;
}

std::string what_is_not_modelled(const JsonObject& config) {
  const std::string type = config.find_string("model_type").value_or("");
  const bool known =
      std::find(std::begin(encoders), std::end(encoders), type) != std::end(encoders);
  if (known || config.find_boolean("is_encoder_decoder").value_or(false)) {
    return std::string(encoder);
  }
  const auto* const foreign = std::ranges::find(foreign_types, type, &Sign::part);
  if (foreign != std::end(foreign_types)) return std::string(foreign->meaning);
  if (says_other_layers(config)) return fmt::format("{} ('layer_types')", hybrid);
  for (const Sign& sign : foreign_signs) {
    for (const auto& [key, value] : config.value().items()) {
      if (lower_case(key).find(sign.part) == std::string::npos || !is_set(value)) continue;
      return fmt::format("{} ({})", sign.meaning, in_quotes(key));
    }
  }
  return "";
}

}  // namespace zeroplan
