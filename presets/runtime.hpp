#pragma once
// Runtimes by name, with their settings at the runtime's own defaults.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_model/runtime_spec.hpp"

namespace zeroplan {

/// KEY=VALUE as given with --set.
using Override = std::pair<std::string, std::string>;

/// The runtime at its defaults (presets/runtimes/NAME.json) with `overrides` applied in order.
/// Throws InputError for an unknown key or a value of the wrong kind.
RuntimeSpec load_runtime(Runtime kind, const std::vector<Override>& overrides);

/// Keys that --set takes for this runtime.
std::vector<std::string> runtime_setting_keys(Runtime kind);

}  // namespace zeroplan
