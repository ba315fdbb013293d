#pragma once
// Models whose layers are one half each, as Megatron-LM's arguments say them. Private to this room
// and to its configurations.
// Source: Megatron-LM @d98e8a64dd core/models/hybrid/hybrid_layer_allocation.py.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/megatron_settings.hpp"
#include "cost_model/question/model.hpp"
#include "presets/hf_import.hpp"

namespace zeroplan {

/// What stands between the layers of two chunks of a pipeline, and before each module that predicts
/// another token.
inline constexpr char chunk_border = '|';
inline constexpr char mtp_border = '/';

/// How many layers each chunk of the pattern has, in model order: one entry where none is said; and
/// the modules behind them.
PipelineLayout layout_of_pattern(std::string_view pattern);

/// Whether the model's layers are one half each, as those that a pattern says.
inline bool is_of_halves(const ModelSpec& model) {
  return !model.layer_kinds.empty() && !has_both_halves(model.layer_kinds.front());
}

/// How many they are together, which is what Megatron-LM takes for --num-layers.
std::int64_t layers_of_pattern(std::string_view pattern);

/// The letter of each layer of these.
std::string pattern_of(std::span<const LayerKind> kinds);

/// Reads `hybrid_layer_pattern` and the sizes of a state space into the model, whose experts, if
/// any, are read. Throws InputError where a letter means no layers, or some that are not described.
void read_hybrid_layers(const JsonObject& config, ModelSpec& model);

}  // namespace zeroplan
