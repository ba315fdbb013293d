#pragma once
// A layout whose ranks are processes of the host, started by a launcher or by spawn_ranks.

#include "validator/communicator/mesh.hpp"
#include "validator/run.hpp"

namespace zeroplan::engine {

/// Runs this process's rank among its peers: the same numbers as run_on_host, bit for bit. Rank 0
/// returns what all ranks report, their parameters as digests; the others what they did
/// themselves. Throws PeerLost, EnvironmentError or OutOfMemory. Assumes as many ranks as were
/// launched.
RunReport run_as_process(const Problem& problem,
                         const RunOptions& options,
                         const Launch& launch,
                         Rendezvous& star,
                         Mesh& mesh);

}  // namespace zeroplan::engine
