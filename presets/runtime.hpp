#pragma once
// Runtimes by name, with their settings at the runtime's own defaults.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_model/question/runtime_settings.hpp"

namespace zeroplan {

/// KEY=VALUE as given with --set.
using Override = std::pair<std::string, std::string>;

/// The runtime at its defaults (presets/runtimes/NAME.json), or those of a container that is among
/// `overrides`, with these applied in order.
/// Throws InputError for an unknown key or a value of the wrong kind.
RuntimeSpec load_runtime(Runtime kind, const std::vector<Override>& overrides);

/// The settings that are not at their defaults, or not at those of their container, as load_runtime
/// takes them. Of a dropout rate only
/// whether it is above zero is known: 0.1, Megatron-LM's own, stands for every other.
std::vector<Override> changed_settings(const RuntimeSpec& spec);

/// One setting as text; a key of this runtime.
std::string setting_text(const RuntimeSpec& spec, std::string_view key);

/// Keys that --set takes for this runtime.
std::vector<std::string> runtime_setting_keys(Runtime kind);

}  // namespace zeroplan
