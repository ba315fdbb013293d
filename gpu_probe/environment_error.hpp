#pragma once
// The machine is in the way, not the question.

#include <stdexcept>

namespace zeroplan {

/// The machine cannot do what was asked: no driver, no device, a call that failed, a peer lost.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace zeroplan
