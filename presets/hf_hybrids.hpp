#pragma once
// What config.json files say of layers that keep a state instead of comparing all keys. Private to
// this room.

#include "presets/hf_families.hpp"

namespace zeroplan {

void qwen_hybrid_quirks(const JsonObject& config, ModelSpec& model);
void bamba_quirks(const JsonObject& config, ModelSpec& model);
void granite_hybrid_quirks(const JsonObject& config, ModelSpec& model);
void nemotron_h_quirks(const JsonObject& config, ModelSpec& model);

/// What `hybrid_override_pattern`, or `layers_block_type` (newer files: `layer_types`), says of
/// each layer, which is one half alone. Throws InputError where it lists other than `layers`.
std::vector<LayerKind> halves_of_layers(const JsonObject& config, std::int64_t layers);

/// How many that lists.
std::int64_t listed_layers(const JsonObject& config);

}  // namespace zeroplan
