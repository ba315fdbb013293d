// fuzz_libfuzzer --list, or --target=NAME [--write-seeds=FOLDER] and libFuzzer's own arguments: the
// same targets as fuzz_replay, over what Clang's instrumentation found to reach new code.
// script/fuzz starts it.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/target.hpp"

using namespace zeroplan;

namespace {

const fuzz::Target* asked = nullptr;

[[noreturn]] void list() {
  for (const fuzz::Target& target : fuzz::targets()) fmt::print("{}\n", target.name);
  std::exit(0);
}

// A file a seed: where libFuzzer begins.
void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : fuzz::seeds_of(*asked)) {
    std::ofstream(folder / fmt::format("seed-{}", number++), std::ios::binary) << seed;
  }
}

}  // namespace

// Its name is libFuzzer's, as is that of the other.
extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  std::string_view name, folder;
  const auto value = [](std::string_view word, std::string_view key) {
    return word.starts_with(key) ? word.substr(key.size()) : std::string_view();
  };
  for (int i = 1; i < *count; ++i) {
    const std::string_view word = (*words)[i];
    if (const auto is = value(word, "--target="); !is.empty()) name = is;
    if (word == "--list") list();
    if (const auto is = value(word, "--write-seeds="); !is.empty()) folder = is;
  }
  for (const fuzz::Target& target : fuzz::targets()) {
    if (target.name == name) asked = &target;
  }
  fuzz::require(asked != nullptr, "--target=NAME names a target");
  if (folder.empty()) return 0;
  write_seeds(folder);
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::understands(*asked, {reinterpret_cast<const char*>(bytes), size});
  return 0;
}
