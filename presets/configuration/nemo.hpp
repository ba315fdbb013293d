#pragma once
// Private to presets: NeMo's YAML and Megatron-Bridge's recipes, which write Megatron-Core's
// fields.

#include <string>
#include <string_view>
#include <vector>

#include "presets/configuration.hpp"
#include "presets/configuration/entries.hpp"

namespace zeroplan {

/// Whether there are fields of Megatron-Core in sections: model.tensor_model_parallel_size.
bool is_of_nemo(const std::vector<Entry>& entries);

/// As Megatron-LM's arguments with the same names. `base`: the function whose configuration the
/// entries change, empty where they are all. Sources: NeMo 1 examples/nlp/language_modeling/conf/
/// megatron_gpt_config.yaml; Megatron-Bridge @067f987df recipes/common.py _pretrain_common and
/// training/mixed_precision.py. Throws InputError where another base says the rest, and for
/// adapters.
ImportedConfiguration from_nemo(Entries entries, std::string_view base);

}  // namespace zeroplan
