// Which layers hold experts, and how many of what size? Front door: HfFamily::read_experts.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "presets/hf_families.hpp"
#include "presets/hf_hybrids.hpp"

namespace zeroplan {
namespace {

const KeyNames dense_width{"intermediate_size"};
const KeyNames expert_width{"moe_intermediate_size"};

MoeSpec read_routing(const JsonObject& config, KeyNames width_keys) {
  MoeSpec moe;
  moe.experts =
      read_size(config, {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"},
                any_experts);
  moe.experts_per_token =
      read_size(config, {"num_experts_per_tok", "experts_per_token", "moe_topk", "moe_k"},
                {1, any_experts.most});
  if (moe.experts_per_token > moe.experts) {
    config.fail(fmt::format("{} experts a token are more than the {} experts there are",
                            moe.experts_per_token, moe.experts));
  }
  moe.intermediate_size = read_size(config, width_keys, any_size);
  return moe;
}

/// Marks each layer by `is_moe`; the dense ones, if any, need a width of their own.
template <class IsMoe>
void place_experts(const JsonObject& config, KeyNames width_keys, ModelSpec& model, IsMoe is_moe) {
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    model.layer_kinds.push_back(is_moe(layer) ? LayerKind::moe : LayerKind::dense);
  }
  const auto dense =
      std::count(model.layer_kinds.begin(), model.layer_kinds.end(), LayerKind::dense);
  if (dense == model.layers) model.moe.reset();
  if (dense == 0 || dense == model.layers) model.layer_kinds.clear();  // empty: all alike
  model.mlp.intermediate_size = dense > 0 ? read_size(config, width_keys, any_size)
                                          : find_size(config, width_keys, any_size).value_or(0);
}

/// Qwen: every decoder_sparse_step-th layer, but for those listed.
void place_by_step(const JsonObject& config, ModelSpec& model) {
  const std::int64_t step = config.find_integer("decoder_sparse_step", any_layers).value_or(1);
  const std::vector<std::int64_t> dense = config.integers("mlp_only_layers", {0, any_layers.most});
  place_experts(config, dense_width, model, [&](std::int64_t layer) {
    return (layer + 1) % step == 0 && std::find(dense.begin(), dense.end(), layer) == dense.end();
  });
}

/// DeepSeek: a dense prefix, then every moe_layer_freq-th layer; or as transformers 5 lists them.
void place_after_prefix(const JsonObject& config, ModelSpec& model) {
  if (config.has("mlp_layer_types")) {
    const std::vector<std::string> types = config.strings("mlp_layer_types");
    return place_experts(config, dense_width, model, [&](std::int64_t layer) {
      const auto i = static_cast<std::size_t>(layer);
      return i < types.size() && types[i] == "sparse";
    });
  }
  const std::int64_t prefix = read_size(config, {"first_k_dense_replace"}, {0, any_layers.most});
  const std::int64_t step = config.find_integer("moe_layer_freq", any_layers).value_or(1);
  place_experts(config, dense_width, model,
                [&](std::int64_t layer) { return layer >= prefix && layer % step == 0; });
}

std::int64_t read_shared_experts(const JsonObject& config) {
  return find_size(config, {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"},
                   {0, 1024})
      .value_or(0);
}

/// Experts, shared ones as wide, and a correction for each: no group is chosen first.
void read_corrected_experts(const JsonObject& config, ModelSpec& model) {
  model.moe = read_routing(config, expert_width);
  model.moe->shared_intermediate_size = model.moe->intermediate_size * read_shared_experts(config);
  model.moe->router_bias = true;
}

/// One number, or as many equal ones as there are layers.
std::int64_t read_for_all_layers(const JsonObject& config, std::string_view key) {
  if (!config.has(key) || !config.value().at(key).is_array()) {
    return read_size(config, {key}, any_experts);
  }
  const std::vector<std::int64_t> list = config.integers(key, any_experts);
  if (list.empty() || std::ranges::adjacent_find(list, std::not_equal_to{}) != list.end()) {
    config.fail(fmt::format("'{}' must be the same in all layers", key));
  }
  return list.front();
}

void read_deepseek_experts(const JsonObject& config, ModelSpec& model) {
  MoeSpec moe = read_routing(config, expert_width);
  moe.shared_intermediate_size = moe.intermediate_size * read_shared_experts(config);
  model.moe = moe;
  model.mtp_layers = config.find_integer("num_nextn_predict_layers", {0, 64}).value_or(0);
}

/// A token chooses groups of experts first, where the file's method, or `otherwise`, is this.
void read_groups(const JsonObject& config,
                 std::string_view method,
                 std::string_view otherwise,
                 MoeSpec& moe) {
  if (config.find_string("topk_method").value_or(std::string(otherwise)) != method) return;
  const std::int64_t groups = config.find_integer("n_group", {1, moe.experts}).value_or(1);
  const std::int64_t chosen = config.find_integer("topk_group", {1, groups}).value_or(groups);
  if (moe.experts % groups != 0) {
    config.fail(fmt::format("n_group {} does not divide {} experts", groups, moe.experts));
  }
  moe.router_groups = groups;
  moe.groups_per_token = chosen;
}

}  // namespace

void read_mixtral_experts(const JsonObject& config, ModelSpec& model) {
  model.moe = read_routing(config, dense_width);
}

void read_gpt_oss_experts(const JsonObject& config, ModelSpec& model) {
  model.moe = read_routing(config, dense_width);
  model.moe->expert_bias = true;
  model.moe->router_bias = true;
  model.moe->clamped = true;
}

void read_minimax_experts(const JsonObject& config, ModelSpec& model) {
  read_mixtral_experts(config, model);
  model.moe->router_bias = true;
}

void read_qwen_experts(const JsonObject& config, ModelSpec& model) {
  model.moe = read_routing(config, expert_width);
  place_by_step(config, model);
}

void read_qwen2_experts(const JsonObject& config, ModelSpec& model) {
  model.moe = read_routing(config, expert_width);
  model.moe->shared_intermediate_size =
      read_size(config, {"shared_expert_intermediate_size"}, any_size);
  model.moe->shared_expert_gate = true;
  place_by_step(config, model);
}

void read_deepseek_v2_experts(const JsonObject& config, ModelSpec& model) {
  if (config.find_boolean("mlp_bias").value_or(false)) {
    config.fail("'mlp_bias' must be false: no published DeepSeek-V2 has biases in its MLPs");
  }
  read_deepseek_experts(config, model);
  read_groups(config, "group_limited_greedy", "greedy", *model.moe);
  place_after_prefix(config, model);
}

void read_deepseek_v3_experts(const JsonObject& config, ModelSpec& model) {
  read_deepseek_experts(config, model);
  // Routing without an auxiliary loss keeps one correction an expert (DeepSeek-V3, section 2.1.2).
  model.moe->router_bias = config.find_string("topk_method").value_or("noaux_tc") == "noaux_tc";
  read_groups(config, "noaux_tc", "noaux_tc", *model.moe);
  place_after_prefix(config, model);
}

void read_solar_experts(const JsonObject& config, ModelSpec& model) {
  read_corrected_experts(config, model);
  read_groups(config, "noaux_tc", "noaux_tc", *model.moe);
}

// From one layer to another, the last where the file says -1, and of these each so manieth.
void read_ernie_experts(const JsonObject& config, ModelSpec& model) {
  read_corrected_experts(config, model);
  const auto find = [&](std::string_view key, std::int64_t least) {
    return config.find_integer(key, {least, any_layers.most});
  };
  const std::int64_t first = find("moe_layer_start_index", 0).value_or(1);
  const std::int64_t last = find("moe_layer_end_index", -1).value_or(-1);
  const std::int64_t step = find("moe_layer_interval", 1).value_or(1);
  place_experts(config, dense_width, model, [&](std::int64_t layer) {
    return (layer + 1) % step == 0 && layer >= first && (last < 0 || layer <= last);
  });
}

void read_afmoe_experts(const JsonObject& config, ModelSpec& model) {
  read_corrected_experts(config, model);
  const std::int64_t dense =
      config.find_integer("num_dense_layers", {0, any_layers.most}).value_or(1);
  place_experts(config, dense_width, model, [&](std::int64_t layer) { return layer >= dense; });
}

// Beside the experts of each layer stands an MLP; hybrids without experts have that alone.
void read_granite_experts(const JsonObject& config, ModelSpec& model) {
  const std::int64_t shared =
      find_size(config, {"shared_intermediate_size"}, {0, any_size.most}).value_or(0);
  if (find_size(config, {"num_local_experts"}, {0, any_experts.most}) == 0 && shared > 0) {
    model.mlp.intermediate_size = shared;
    return;
  }
  read_mixtral_experts(config, model);
  model.moe->shared_intermediate_size = shared;
}

// Transformers' class has one shared expert, whatever the file says of their number.
void read_hunyuan_experts(const JsonObject& config, ModelSpec& model) {
  MoeSpec moe;
  moe.experts = read_for_all_layers(config, "num_experts");
  moe.experts_per_token = read_for_all_layers(config, "moe_topk");
  moe.intermediate_size = read_size(config, dense_width, any_size);
  moe.shared_intermediate_size = moe.intermediate_size;
  model.moe = moe;
}

void read_llama4_experts(const JsonObject& config, ModelSpec& model) {
  model.moe = read_routing(config, dense_width);
  model.moe->shared_intermediate_size = model.moe->intermediate_size;  // always one shared expert
  const std::vector<std::int64_t> listed = config.integers("moe_layers", {0, any_layers.most});
  const std::int64_t step =
      listed.empty() ? read_size(config, {"interleave_moe_layer_step"}, any_layers) : 1;
  place_experts(config, {"intermediate_size_mlp"}, model, [&](std::int64_t layer) {
    if (!listed.empty()) return std::find(listed.begin(), listed.end(), layer) != listed.end();
    return (layer + 1) % step == 0;
  });
}

// Two matrices each, and always one that all tokens go to (transformers v5.24.0
// models/nemotron_h/modeling_nemotron_h.py NemotronHMoE); files without such layers may say how
// large experts would be.
void read_nemotron_h_experts(const JsonObject& config, ModelSpec& model) {
  model.layer_kinds = halves_of_layers(config, model.layers);
  const auto has = [&](LayerKind kind) {
    return std::ranges::find(model.layer_kinds, kind) != model.layer_kinds.end();
  };
  model.mlp.intermediate_size = has(LayerKind::mlp)
                                    ? read_size(config, dense_width, any_size)
                                    : find_size(config, dense_width, any_size).value_or(0);
  if (!has(LayerKind::experts)) return;
  model.moe = read_routing(config, expert_width);
  model.moe->latent_size = config.find_integer("moe_latent_size", any_size).value_or(0);
  model.moe->shared_intermediate_size =
      read_size(config, {"moe_shared_expert_intermediate_size"}, any_size);
  model.moe->gated = false;
  model.moe->router_bias = true;
  read_groups(config, "noaux_tc", "noaux_tc", *model.moe);
}

}  // namespace zeroplan
