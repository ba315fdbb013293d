// For libFuzzer: ZEROPLAN_FUZZ_TARGET names the target. ZEROPLAN_FUZZ_SEEDS=FOLDER: its first
// corpus is written there.
#include <cstdlib>
#include <fstream>

#include "gpu_probe/environment_error.hpp"
#include "presets/input_error.hpp"
#include "tests/fuzz/target.hpp"

using namespace zeroplan;

namespace {

const fuzz::Target& chosen() {
  const char* const name = std::getenv("ZEROPLAN_FUZZ_TARGET");
  for (const fuzz::Target& target : fuzz::targets()) {
    if (name != nullptr && target.name == name) return target;
  }
  fuzz::require(false, "ZEROPLAN_FUZZ_TARGET is a target");
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* const folder = std::getenv("ZEROPLAN_FUZZ_SEEDS")) {
    int i = 0;
    for (const std::string& seed : fuzz::seeds_of(chosen())) {
      std::ofstream(std::string(folder) + "/seed-" + std::to_string(i++)) << seed;
    }
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const fuzz::Target& target = chosen();
  try {
    target.look({reinterpret_cast<const char*>(data), size});
  } catch (const InputError& error) {
    fuzz::require_printable(error.what());
  } catch (const EnvironmentError&) {
  }
  return 0;
}
