#pragma once
// The importer on JSON that is already parsed. Private to this room.

#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/model.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {

using Notes = std::vector<std::string>;

/// As read_hf_config; assumptions are appended to `notes`.
ModelSpec import_hf_config(const JsonObject& config, Notes& notes, std::string_view as = {});

/// The model_type under which Megatron-LM's arguments stand as an object, dashes as underscores.
inline constexpr std::string_view megatron_model_type = "megatron_arguments";

/// The model that such arguments build. Throws InputError on a missing or impossible size.
ModelSpec import_megatron_model(const JsonObject& config);

/// The kinds of its layers where attention of these is linear, of each of them.
std::vector<LayerKind> kinds_with_linear_attention(const ModelSpec& model,
                                                   const std::vector<bool>& linear);

/// Throws InputError when the model has 1e15 parameters or more. No arithmetic on a model is safe
/// before: products of sizes that are each allowed can exceed 64 bits.
void check_size(const JsonObject& config, const ModelSpec& model);

}  // namespace zeroplan
