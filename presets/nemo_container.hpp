#pragma once
// What NVIDIA's NeMo containers turn on that Megatron-LM's own arguments leave off. Private to this
// room.

#include <string_view>
#include <vector>

#include "presets/runtime.hpp"

namespace zeroplan {

/// The container that `text` names, "26.04" for 26.04.01 too; empty where none is known.
std::string_view nemo_container(std::string_view text);

/// What it turns on, by its name as nemo_container gives it: settings as load_runtime takes them.
/// Sources: NVIDIA-NeMo/Megatron-Bridge docs/releases/software-versions.md for releases, and the
/// files named beside each line of the table.
std::vector<Override> container_settings(std::string_view container);

}  // namespace zeroplan
