#pragma once
// Private to presets: the file that `accelerate config` writes.

#include <vector>

#include "presets/configuration.hpp"
#include "presets/configuration/entries.hpp"

namespace zeroplan {

std::vector<Entry> to_accelerate(const Problem& problem);

/// Whether a key is one that Accelerate's files have.
bool is_of_accelerate(const std::vector<Entry>& entries);

/// DDP, FSDP or DeepSpeed as the Trainer's arguments would say them: what a training script says
/// itself, such as its batch, stays open. `arguments`: of the script it starts, as the Trainer
/// names them; where they are the Trainer's, nothing stays open. Throws InputError for what no
/// runtime here does. Source: accelerate @16cb6eb8 commands/config/config_args.py,
/// utils/dataclasses.py.
ImportedConfiguration from_accelerate(Entries entries, const std::vector<Entry>& arguments);

}  // namespace zeroplan
