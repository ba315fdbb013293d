#pragma once
// The one failure of this room: what a person gave cannot be used.

#include <stdexcept>

namespace zeroplan {

/// Says on one line, without a program prefix: where, what is wrong, what is allowed, the nearest
/// name.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace zeroplan
