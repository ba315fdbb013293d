#pragma once
// What is close to what was asked: legal values beside an illegal one, fitting layouts beside one
// that does not fit.

#include <string>
#include <vector>

#include "planner/fit.hpp"

namespace zeroplan {

/// The violation as a sentence, with the nearest legal values of a field that was given.
std::string refusal_message(const Request& request,
                            const LayoutChoice& choice,
                            const Violation& violation);

/// Every change of one field after which the layout fits with its whole band, least intrusive
/// first; where there is none, every change of two. `problem` is the layout: the request's choices
/// with `choice`.
std::vector<NearestFit> nearest_fits(const Request& request,
                                     const LayoutChoice& choice,
                                     const Problem& problem);

}  // namespace zeroplan
