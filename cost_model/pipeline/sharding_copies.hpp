#pragma once
// What sharded data parallelism copies around its collectives.

#include "cost_model/network/volume.hpp"

namespace zeroplan {

/// Seconds that one pass of a micro-batch takes longer, with `elements` parameters on the rank
/// before sharding divides them.
inline double sharding_copies_seconds(const Problem& problem,
                                      std::int64_t elements,
                                      During during) {
  return code_of(problem).sharding_copies(problem, elements, during);
}

/// What copies add in a runtime that reduces and gathers in place: nothing.
inline double no_sharding_copies(const Problem&, std::int64_t, During) {
  return 0;
}

}  // namespace zeroplan
