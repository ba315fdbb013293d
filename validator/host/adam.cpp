// How does a step change the parameters on the host? Front door: HostDevice::adam.
#include <cmath>

#include "validator/host/host_device.hpp"

namespace zeroplan::engine {

// Kingma and Ba 2014, algorithm 1; master copy and moments fp32.
void HostDevice::adam(ConstHalf gradients,
                      const AdamStep& step,
                      Wide master,
                      Wide first,
                      Wide second,
                      Half parameters) {
  const auto count = static_cast<double>(step.step);
  const auto beta1 = static_cast<float>(step.beta1);
  const auto beta2 = static_cast<float>(step.beta2);
  const auto unbias1 = static_cast<float>(1.0 / (1.0 - std::pow(step.beta1, count)));
  const auto unbias2 = static_cast<float>(1.0 / (1.0 - std::pow(step.beta2, count)));
  const auto rate = static_cast<float>(step.rate);
  const auto epsilon = static_cast<float>(step.epsilon);
  for (std::int64_t i = 0; i < master.elements(); ++i) {
    const float g = widen(gradients.data[i]);
    float& m = first.data[i];
    float& v = second.data[i];
    m = beta1 * m + (1.0F - beta1) * g;
    v = beta2 * v + (1.0F - beta2) * g * g;
    master.data[i] -= rate * (m * unbias1) / (std::sqrt(v * unbias2) + epsilon);
    parameters.data[i] = narrow(master.data[i]);
  }
}

}  // namespace zeroplan::engine
