#pragma once
// What an optimizer makes on its first step, tensor by tensor.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// Adds to startup.moments what the problem's optimizer makes for `count` elements of the weight
/// `name`, as the allocator rounds it. `hidden_matrix` as in moment_tensors.
void add_moments(Startup& startup,
                 const Problem& problem,
                 std::string_view name,
                 std::int64_t count,
                 bool hidden_matrix);

}  // namespace zeroplan
