#pragma once
// The layout of a plan, or of a recorded program, as the options that say it.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "presets/configuration.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {

/// Each field of `layout` (fit's document) that has an option; dp and gradient_accumulation follow
/// from the others. Throws InputError.
std::vector<TypedOption> layout_of_plan(const JsonObject& layout);

/// What this key says, as it would be typed: one of `allowed`. Throws InputError.
std::string plan_value(const JsonObject& object,
                       std::string_view key,
                       std::span<const std::string_view> allowed);

/// A value as it would be typed: "on" for true.
std::string plan_text(const nlohmann::json& value);

}  // namespace zeroplan
