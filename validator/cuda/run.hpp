#pragma once
// A layout on one GPU: all its ranks as threads, or one rank alone.

#include "gpu_probe/cuda/watchdog.hpp"
#include "validator/cuda/gpu_run.hpp"
#include "validator/cuda/meter.hpp"

namespace zeroplan::engine {

/// Ends the program where a GPU does not answer for longer than ranks wait for each other.
Watchdog watching(const RunOptions& options);

/// Exact where bytes are asked for; the driver's own calls would be most of a timed step.
Allocation allocation_of(const RunOptions& options);

/// Every rank of the layout on the first GPU, reductions in the order of ranks. Throws PeerLost,
/// OutOfMemory, EnvironmentError: what the first rank to fail threw.
GpuRun run_on_one_gpu(const Problem& problem, const RunOptions& options);

/// The rank at `place` on the first GPU, at the problem's own size, its peers absent: what they
/// would have sent is whatever lies in memory, so numbers mean nothing, and bytes do.
GpuRun run_as_rank(const Problem& problem, const Place& place, const RunOptions& options);

}  // namespace zeroplan::engine
