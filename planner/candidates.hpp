#pragma once
// The points of a layout space, in order of preference.

#include <vector>

#include "planner/request.hpp"

namespace zeroplan {

/// Every point of the request's space, legal or not, most preferred first.
std::vector<LayoutChoice> candidates(const Request& request);

/// The given fields of `request` laid over `choice`.
LayoutChoice with_given_fields(const Request& request, LayoutChoice choice);

}  // namespace zeroplan
