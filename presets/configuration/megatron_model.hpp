#pragma once
// Private to presets: the arguments by which Megatron-LM knows a model.

#include "cost_model/question/model.hpp"
#include "presets/configuration/entries.hpp"

namespace zeroplan {

/// The shape of the model; rotary positions where it has no learned ones.
void add_megatron_model(std::vector<Entry>& out, const ModelSpec& model);

/// The model as read_hf_config takes it, where the arguments say it whole. Empty where they do not;
/// `missing` then says what does.
std::string megatron_config(const Entries& entries, std::string& missing);

/// Takes all that say a model; gives their names.
std::vector<std::string> take_megatron_model(Entries& entries);

}  // namespace zeroplan
