#pragma once
// Values of one field of a layout, as numbers.

#include <boost/container/small_vector.hpp>
#include <cstdint>

namespace zeroplan {

/// Most fields have few: a search asks for them millions of times, and these need no heap.
using Values = boost::container::small_vector<std::int64_t, 24>;

}  // namespace zeroplan
