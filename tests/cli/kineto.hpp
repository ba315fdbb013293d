#pragma once
// What torch.profiler would write of a run that did exactly what timeline says.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace zeroplan::tests {

/// How many times as long an event of `timeline --json` takes as predicted.
using Slower = std::function<double(const nlohmann::json& event)>;

/// A step for each of `lengths`: all that `timeline --json` tells, so many times as long. Kernels
/// have names of CUDA libraries, collectives NCCL's and what PyTorch notes of them; what begins
/// later is put off by what takes longer before it. `step_seconds`: as predicted.
nlohmann::json kineto_trace(const nlohmann::json& timeline,
                            double step_seconds,
                            const Slower& slower,
                            const std::vector<double>& lengths = {1});

/// "products", "attention" or "memory-bound" of a kernel that timeline names.
std::string kind_of_kernel(const std::string& name);

}  // namespace zeroplan::tests
