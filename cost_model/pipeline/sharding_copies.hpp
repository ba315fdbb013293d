#pragma once
// What sharded data parallelism copies around its collectives.

#include "cost_model/network/volume.hpp"

namespace zeroplan {

/// Seconds that one pass of a micro-batch takes longer, with `elements` parameters on the rank
/// before sharding divides them. FSDP2 copies what it gathered into the parameters, and their
/// gradients, widened, into the order of the ranks before it reduces them
/// (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py foreach_all_gather_copy_out,
/// foreach_reduce). FSDP1 copies about as much: gradients of views into their flat parameter, then
/// widened, then divided (_runtime_utils.py). A pipeline does so once a step, which is not counted;
/// other runtimes have 0.
double sharding_copies_seconds(const Problem& problem, std::int64_t elements, During during);

}  // namespace zeroplan
