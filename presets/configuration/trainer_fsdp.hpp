#pragma once
// Private to presets: what `fsdp` and `fsdp_config` of Hugging Face's Trainer mean.

#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/layout.hpp"
#include "cost_model/question/model.hpp"
#include "presets/configuration/entries.hpp"

namespace zeroplan {

struct TrainerFsdp {
  bool asked = false;   // FSDP runs
  bool shards = false;  // and divides the states
  ZeroStage zero = ZeroStage::none;
  bool offloads = false;     // all states, and the update, on the host
  bool checkpoints = false;  // recomputes layers
  std::vector<std::string> notes;
};

/// Takes what is understood. Throws InputError for a sharding that the arguments do not say whole:
/// a hybrid one is within a node, of unknown size. Sources: transformers 5.23 training_args.py
/// _process_fsdp_args, _apply_legacy_fsdp_to_config, and 4.57 __post_init__.
TrainerFsdp read_trainer_fsdp(Entries& entries);

/// The class of layers that a configuration has to name, since accelerate would also look for the
/// blocks of a vision tower, which the text model alone does not have, and end there (transformers
/// v5.24.0 models/qwen3_5/modeling_qwen3_5.py _no_split_modules, accelerate 1.15.0
/// utils/dataclasses.py set_auto_wrap_policy). Nothing of other models.
std::string_view layers_to_name(const ModelSpec& model);

}  // namespace zeroplan
