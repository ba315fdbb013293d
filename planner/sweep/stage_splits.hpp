#pragma once
// Layers of the first and of the last stage (Field::stage_split), both as one number.

#include <cstdint>

#include "planner/request.hpp"
#include "planner/sweep/values.hpp"

namespace zeroplan {

/// As the runtime splits by itself (0), or with a few layers more or less than the middle stages on
/// the first and the last one; less, as many as an end of the model is worth too.
Values stage_splits(const Request& request, const Problem& so_far);

/// Sets what such a number stands for.
void set_stage_split(Layout& layout, std::int64_t number);

}  // namespace zeroplan
