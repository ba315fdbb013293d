#pragma once
// The one failure of this room: what a person gave cannot be used.

#include <stdexcept>
#include <string>

namespace zeroplan {

/// Says on one line, without a program prefix: where, what is wrong, what is allowed, the nearest
/// name. What a terminal would obey, as it may stand in a file that is quoted, becomes '?'.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& said);
};

}  // namespace zeroplan
