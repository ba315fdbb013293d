#pragma once
// Model configurations that are no decoder's config.json as transformers writes it. Private to this
// room.

#include <nlohmann/json.hpp>
#include <optional>

#include "presets/hf_import.hpp"

namespace zeroplan {

/// Meta's params.json (llama models/llama3/reference_impl/model.py: the width of the MLP is two
/// thirds of four times dim, times ffn_dim_multiplier, rounded up to multiple_of) or nanoGPT's
/// configuration (model.py GPTConfig) as config.json says it, with what was assumed; empty for
/// anything else. Throws InputError where a size is missing.
std::optional<nlohmann::json> as_hugging_face(const JsonObject& config, Notes& notes);

/// What of a model that is not known is not modelled, as the end of a sentence: "is a hybrid ...";
/// empty where nothing says so.
std::string what_is_not_modelled(const JsonObject& config);

}  // namespace zeroplan
