// Tests that need a device. Without one they are skipped, which is not passed.
#define CATCH_CONFIG_RUNNER
#include <cstdio>

#include "gpu_probe/devices.hpp"
#include "tests/catch.hpp"

int main(int argc, char** argv) {
  constexpr int skipped = 77;  // as the test runner is told
  try {
    zeroplan::device_count();
  } catch (const zeroplan::EnvironmentError& error) {
    std::printf("skipped: %s\n", error.what());
    return skipped;
  }
  return Catch::Session().run(argc, argv);
}
