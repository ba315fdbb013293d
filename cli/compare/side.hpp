#pragma once
// One side of a comparison: what is said for both, and what only this side says.

#include <string>
#include <string_view>

#include "cli/request/arguments.hpp"
#include "presets/configuration.hpp"

namespace zeroplan {

/// The question of one side. `text` is the file of a plan, FILE#N of a sweep's, or options as they
/// are typed, which may begin with a MODEL. What `common` says too must be the
/// same. `label` opens every message. Throws InputError.
LayoutArguments read_side(const LayoutArguments& common,
                          std::string_view label,
                          const std::string& text);

/// Puts an option into the field it is about; an unknown flag is an InputError.
void give(LayoutArguments& arguments, const TypedOption& option);

}  // namespace zeroplan
