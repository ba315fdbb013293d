#pragma once
// A layout over several processes, each a rank with a GPU.

#include "validator/cuda/gpu_run.hpp"
#include "validator/rendezvous/rendezvous.hpp"

namespace zeroplan::engine {

/// This process's rank on GPU `gpu` of those it sees; every process of the launch calls it, as
/// often and with the same problem, whose world is the launch's. Rank 0 gets all reports
/// (parameters as digests), the others only their own. Throws PeerLost or EnvironmentError, in
/// every rank, when one is lost.
GpuRun run_over_nccl(const Problem& problem,
                     const RunOptions& options,
                     const Launch& launch,
                     std::int64_t gpu,
                     Rendezvous& star);

}  // namespace zeroplan::engine
