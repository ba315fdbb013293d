#pragma once
// The spelling of every choice a person can make: one table an enum, used to print and to parse.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace zeroplan {

/// Specialised beside each enum: `value[i]` is the spelling of the enumerator with value i.
template <class Enum>
struct Spellings;

/// Every spelling of an enum, in enumerator order.
template <class Enum>
constexpr std::span<const std::string_view> names() {
  return Spellings<Enum>::value;
}

/// How an enumerator is written on the command line and in JSON.
template <class Enum>
constexpr std::string_view name_of(Enum value) {
  return Spellings<Enum>::value[static_cast<std::size_t>(value)];
}

/// The enumerator with this spelling; empty when there is none.
template <class Enum>
constexpr std::optional<Enum> parse_name(std::string_view text) {
  const auto all = names<Enum>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace zeroplan
