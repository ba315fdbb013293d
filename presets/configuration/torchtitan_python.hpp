#pragma once
// Private to presets: torchtitan's configuration since it is a Python function.

#include <cstdint>
#include <string>
#include <vector>

#include "cost_model/question/problem.hpp"
#include "presets/configuration/entries.hpp"

namespace zeroplan {

/// Days on which torchtitan's configuration changed, as the setting recipe_date writes them.
namespace titan_dates {
inline constexpr std::int64_t python =
    20260626;  // 9530a874d; other Python since 20260223, 9810191bb
inline constexpr std::int64_t async_of_compile = 20260812;  // 737594746: of parallelism before
inline constexpr std::int64_t captured_steps = 20260813;    // f84224af0: CUDA graphs
inline constexpr std::int64_t tokens = 20260820;            // 73aed7f6c: not samples
}  // namespace titan_dates

/// Whether a step of such a layout cannot be one CUDA graph: pipelines, and dispatchers that wait
/// for the host (trainer.py _validate_cuda_graphs).
constexpr bool bars_graphs(std::int64_t pp, std::int64_t ep) {
  return pp > 1 || ep > 1;
}

/// Whether the checkout of this plan reads Python as it is written here.
bool reads_python(const Problem& problem);

/// A module with one function, plan, which changes the configuration that torchtitan registers for
/// the model in all that decides memory or time: `entries` are those of to_torchtitan. A model that
/// torchtitan has no flavor of is left to be filled in. Source: torchtitan @b5bcd76c6
/// config/configs.py, trainer.py Trainer.Config, models/*/config_registry.py.
std::string write_torchtitan_python(const Problem& problem, const std::vector<Entry>& entries);

/// The entries of such a module. Throws InputError where `base`, another function's configuration,
/// would say something that decides.
std::vector<Entry> read_torchtitan_python(PythonConfiguration file, std::string_view where);

}  // namespace zeroplan
