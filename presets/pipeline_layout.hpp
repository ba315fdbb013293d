#pragma once
// Private to presets: Megatron-Core's pipeline_model_parallel_layout as text.

#include <optional>
#include <string>
#include <string_view>

#include "cost_model/question/runtime_settings.hpp"

namespace zeroplan {

/// The layout that a text like "Et*3|(tt|)*29mL" says: chunks between bars, in model order, of E
/// (the embedding, first), t (a layer), m (a multi-token-prediction module) and L (the loss, last).
/// `x*3` and `(xy)*3` repeat, commas mean nothing. Empty for any other text, and for a module that
/// has not its place beside the loss. Source: NVIDIA/Megatron-LM @d98e8a64
/// core/transformer/pipeline_parallel_layer_layout.py parse_str_to_list, validate_layer_layout.
std::optional<PipelineLayout> parse_pipeline_layout(std::string_view text);

/// A text that says a layout that is given.
std::string pipeline_layout_text(const PipelineLayout& layout);

}  // namespace zeroplan
