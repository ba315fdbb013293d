#pragma once
// How long a kernel takes that only moves bytes.

#include "cost_model/question/cluster.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

/// What limits it: the order in which it touches memory.
enum class Access {
  streaming,
  permute,  // whole rows by index
  scatter,  // the same with atomic additions: PyTorch's scatter_add
  scan,     // along the sequence, by Triton's kernels
};

/// Seconds of one kernel that reads and writes `moved` bytes of HBM together: a start, and the rate
/// that kernels::MemorySpeed gives this access. 0 for no bytes, since then nothing is launched.
double memory_bound_seconds(Bytes moved, Access access, const GpuSpec& gpu);

}  // namespace zeroplan
