// The same question in a build without CUDA. Front door: visible_devices.
#include "gpu_probe/devices.hpp"

namespace zeroplan {

std::vector<Device> visible_devices() {
  throw EnvironmentError(
      "this zeroplan was built without CUDA; install the CUDA Toolkit and build with "
      "-DZEROPLAN_CUDA=ON");
}

}  // namespace zeroplan
