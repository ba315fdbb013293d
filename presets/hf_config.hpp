#pragma once
// Hugging Face `config.json` as a model description.

#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/model.hpp"

namespace zeroplan {

/// The model that a config.json describes, nameless. `where` opens every message; `assumptions`
/// (may be null) receives one sentence for each thing the file leaves open or that is not modelled.
/// `as` is the model_type to read it as, whatever it says; empty: its own, and where that is
/// unknown, llama's for a file with llama's keys. Throws InputError on JSON it cannot read, an
/// unsupported model_type, or a missing or impossible size: sizes never come from a class default,
/// which is some other model.
ModelSpec read_hf_config(std::string_view json_text,
                         std::string_view where,
                         std::vector<std::string>* assumptions,
                         std::string_view as = {});

/// The `model_type` values that can be read, sorted.
std::vector<std::string> supported_model_types();

}  // namespace zeroplan
