#pragma once
// Which GPUs does this process see?

#include <string>
#include <vector>

#include "cost_model/question/units.hpp"
#include "gpu_probe/environment_error.hpp"

namespace zeroplan {

/// One visible GPU, as the CUDA runtime reports it.
struct Device {
  std::string name;
  int compute_capability = 0;  // 10 x major + minor
  Bytes memory;                // total, as a process may allocate it
  Bytes free;                  // at the moment, after this process made its context
};

/// How many GPUs are visible. Throws EnvironmentError without a driver and without a device.
int device_count();

/// Every visible GPU in CUDA's order. Throws as device_count. Making a context on each device takes
/// a moment.
std::vector<Device> visible_devices();

}  // namespace zeroplan
