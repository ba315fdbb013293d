#pragma once
// Values of one field of a layout, as numbers.

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace zeroplan {

/// Most fields have few: a search asks for them millions of times, and these need no heap.
using Values = boost::container::small_vector<std::int64_t, 24>;

/// Enumerators as the numbers of a field that has them.
template <class T>
Values numbers(std::span<const T> values) {
  Values list;
  for (const T value : values) list.push_back(static_cast<std::int64_t>(value));
  return list;
}

template <class T>
Values numbers(std::initializer_list<T> values) {
  return numbers(std::span(values));
}

}  // namespace zeroplan
