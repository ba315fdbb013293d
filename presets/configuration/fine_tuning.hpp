#pragma once
// Private to presets: what programs around Hugging Face's Trainer add to its arguments.

#include <optional>
#include <string>
#include <vector>

#include "presets/configuration/entries.hpp"

namespace zeroplan {

/// Whether a key is one of axolotl's or LLaMA-Factory's own.
bool is_of_fine_tuner(const std::vector<Entry>& entries);

/// axolotl's keys and LLaMA-Factory's as TrainingArguments names them. Their own defaults are put
/// in. Sources: axolotl docs/config-reference and utils/schemas/config.py; LLaMA-Factory
/// src/llamafactory/hparams/finetuning_args.py (finetuning_type lora), data_args.py (cutoff_len
/// 2048) and model_args.py (disable_gradient_checkpointing false). Throws InputError where what is
/// trained is not all weights of one model on one mesh.
std::vector<Entry> as_trainer_arguments(std::vector<Entry> entries, std::string_view where);

/// Throws InputError where adapters, or frozen or quantized weights are trained.
void refuse_adapters(const Entries& entries);

/// Throws InputError where a batch has a name that the Trainer does not know.
void require_batch_of_trainer(const Entries& entries);

/// Tokens of a sample, under whichever name a script has for them. Throws InputError where two
/// names say two lengths.
std::optional<std::int64_t> take_sample_length(Entries& entries);

}  // namespace zeroplan
