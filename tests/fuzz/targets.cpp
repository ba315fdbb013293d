#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gpu_probe/environment_error.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/source_dir.hpp"

namespace zeroplan::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> all{
      {"model", look_at_model, model_seeds, 3'000, 2},
      {"configuration", look_at_configuration, configuration_seeds, 4'000, 5},
      {"plan", look_at_plan, plan_seeds, 2'000, 20},
      {"cluster", look_at_cluster, cluster_seeds, 2'000, 1},
      {"recorded", look_at_recorded, recorded_seeds, 400, 0},
      {"trace", look_at_trace, trace_seeds, 2'000, 3},
      {"snapshot", look_at_snapshot, snapshot_seeds, 2'000, 3},
      {"pickle", look_at_pickle, snapshot_seeds, 2'000, 3},
      {"quantities", look_at_quantities, quantity_seeds, 10'000, 100},
      {"command-line", look_at_command_line, command_line_seeds, 1'000, 100},
      {"rank-0", look_at_rank_0, message_seeds, 200, 100},
      {"stranger", look_at_stranger, message_seeds, 50, 100},
      {"answer", look_at_answer, answer_seeds, 1'000, 5},
      {"allocator", look_at_allocator, allocator_seeds, 1'000, 100},
  };
  return all;
}

std::vector<std::string> seeds_of(const Target& target) {
  std::vector<std::string> all = target.seeds();
  const auto found = std::filesystem::path(source_dir() + "/tests/fuzz/found") / target.name;
  if (std::filesystem::exists(found)) {
    for (const auto& entry : std::filesystem::directory_iterator(found)) {
      all.push_back(contents(entry.path()));
    }
  }
  std::ranges::sort(all);
  return all;
}

bool understands(const Target& target, std::string_view bytes) {
  try {
    target.look(bytes);
    return true;
  } catch (const InputError& error) {
    require_printable(error.what());
  } catch (const EnvironmentError&) {
  }
  return false;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.is_open(), path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

void require_printable(std::string_view said) {
  require(printable(said) == said, "what is said can be printed");
}

}  // namespace zeroplan::fuzz
