#pragma once
// Private to presets: where arguments of Hugging Face's Trainer may stand, and what tells them from
// another program's.

#include <vector>

#include "presets/configuration/entries.hpp"

namespace zeroplan {

/// Whether a key is one that TrainingArguments has and neither DeepSpeed's own file nor Megatron-LM
/// has.
bool is_of_trainer(const std::vector<Entry>& entries);

/// Arguments of a command line as TrainingArguments names and types them: dashes may stand for
/// underscores, a flag alone is true (transformers hf_argparser.py).
std::vector<Entry> trainer_arguments(const std::vector<Entry>& entries);

/// The entries with what `deepspeed` and `fsdp_config` name, which may be a file or its text, in
/// place of the name; keys of the latter may begin with fsdp_, and do not here. Throws InputError.
Entries with_named_files(const Entries& entries);

}  // namespace zeroplan
