#pragma once
// What a run on GPUs tells.

#include "validator/cuda/closing.hpp"
#include "validator/ranks.hpp"

namespace zeroplan::engine {

struct GpuRun {
  RunReport report;
  std::vector<Closing> closings;  // by GPU
};

}  // namespace zeroplan::engine
