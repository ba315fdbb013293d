#pragma once
// What an InputError says, so that a test can look for the words that help a person.

#include <string>
#include <string_view>

#include "presets/input_error.hpp"

namespace zeroplan {

/// The message `act` fails with; empty when it does not fail.
template <class Act>
std::string error_text(Act act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

inline bool says(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

}  // namespace zeroplan
