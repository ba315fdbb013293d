#pragma once
// Several questions typed as one: lists of values.

#include <vector>

#include "cli/request/arguments.hpp"
#include "presets/configuration.hpp"

namespace zeroplan {

struct Variant {
  LayoutArguments question;
  std::vector<TypedOption> values;  // of the options that were lists
};

/// Every combination of the values that options list between commas, the first option slowest; one
/// variant without values where none is a list. Throws InputError where they are more than 256.
std::vector<Variant> variants(const LayoutArguments& arguments);

}  // namespace zeroplan
