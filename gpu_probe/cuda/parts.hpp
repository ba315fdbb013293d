#pragma once
// The parts of a probe, in the order they run: the memory part first, since it watches what the
// first calls of a process allocate.

#include <chrono>

#include "gpu_probe/facts.hpp"

namespace zeroplan {

/// Memory facts of the first GPU; to be called before anything else touches it.
MemoryFacts measure_memory();

/// By how much free memory of the current GPU falls when a small allocation needs a new page; 0
/// where it never does.
Bytes allocation_step();

/// The smallest block, by halves of a page of such bytes, that takes a page of its own.
Bytes whole_page_from(Bytes page);

/// Seconds of each product, alone on the first GPU.
std::vector<GemmSamples> measure_gemms(const std::vector<Gemm>& gemms);

/// Clocks of the first GPU while it computes this product; none without the driver's management
/// library.
std::optional<ClockFacts> measure_clocks(const Gemm& gemm);

/// Transfers on the first GPU, and between it and the host, each over about `bytes`.
std::vector<TransferSamples> measure_transfers(Bytes bytes);

/// Transfers between every two GPUs, one pair after another.
std::vector<PeerSamples> measure_peers(int devices, Bytes bytes);

/// What NCCL takes of the GPUs' memory for communicators of 1, 2, 4, ... and all GPUs.
std::vector<CommunicatorMemory> measure_communicators(int devices, std::chrono::seconds patience);

/// Seconds of collectives over groups of 2, 4, ... and all GPUs of this node, payloads from 1 KiB
/// to `largest`, doubling; all groups of a size run at once. Empty for one GPU.
std::vector<CollectiveSamples> measure_collectives(int devices,
                                                   Bytes largest,
                                                   std::chrono::seconds patience);

}  // namespace zeroplan
