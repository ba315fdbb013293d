#pragma once
// What the process tells its caller.

namespace zeroplan {

enum class ExitCode : int {
  yes = 0,          // fits, or did what was asked
  no = 1,           // a clean no: does not fit
  bad_input = 2,    // usage, or input that cannot be used
  environment = 3,  // no device, no driver
};

}  // namespace zeroplan
