// Tests that need a device. Without one they are skipped, which is not passed; they can be listed.
#define CATCH_CONFIG_RUNNER
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "gpu_probe/devices.hpp"
#include "tests/catch.hpp"

int main(int argc, char** argv) {
  constexpr int skipped = 77;  // as the test runner is told
  const bool lists = std::any_of(argv + 1, argv + argc, [](const char* argument) {
    return std::string_view(argument).starts_with("--list");
  });
  if (lists) return Catch::Session().run(argc, argv);
  try {
    zeroplan::device_count();
  } catch (const zeroplan::EnvironmentError& error) {
    std::printf("skipped: %s\n", error.what());
    return skipped;
  }
  return Catch::Session().run(argc, argv);
}
