#pragma once
// The settings by which a runtime exchanges states (Field::knobs), all of them as one number.

#include <cstdint>

#include "planner/request.hpp"
#include "planner/sweep/values.hpp"

namespace zeroplan {

/// The settings that a search tries: overlap, buckets, resharding, where the request leaves them
/// open.
Values knobs(const Request& request, const Problem& so_far);

/// Sets the sharding settings that one of the numbers of `knobs` stands for.
void set_sharding_settings(Layout& layout, std::int64_t number);

}  // namespace zeroplan
