#pragma once
// Where nothing fits because too much was given: what to leave open.

#include <vector>

#include "planner/sweep/search.hpp"

namespace zeroplan {

/// Smallest layouts first, up to the first that fits with its whole band; to the end where the
/// allocator's replay refuses that one.
SearchResult some_plan(SearchSpace space, std::size_t threads, const Watch& watch = {});

/// The smallest sets of given fields without which some layout is legal and fits: each single field
/// that is enough, or where none is each pair. Empty where nothing was given or no pair is enough.
/// Exact: each set is searched to its end or to its first plan. Once the watch says stop, those
/// found so far.
std::vector<std::vector<Field>> fields_to_release(const SearchSpace& space,
                                                  std::size_t threads,
                                                  const Watch& watch = {});

}  // namespace zeroplan
