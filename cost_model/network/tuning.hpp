#pragma once
// Every latency and efficiency that collective_time.cpp uses, with where it comes from.
//
// "tuning.cc" and "topo.h" are NVIDIA/nccl src/graph/ @5067397c. "Fitted" values minimise the mean
// |log error| on every second of the 1,176 rows of ai-dynamo/aiconfigurator @095f58a5 in
// tests/reference/collectives.jsonl (one node of A100, H100, H200, B200, GB200; 2, 4 and 8 ranks),
// were then rounded, and are judged on all rows by
// tests/cost_model/communication/measured_collectives_test.cpp.

#include <array>
#include <cstdint>

namespace zeroplan::tuning {

constexpr double us = 1e-6;

/// Seconds for one hop of a message.
struct Hops {
  double ring;
  double tree;
};

/// How NCCL moves data through its buffers.
struct Protocol {
  double base;  // seconds once a collective
  Hops nvlink, pcie, network;
  double network_post;     // the least a ring step inside a node takes when the ring leaves it
  double network_plateau;  // factor on the latency of a ring all-reduce over the network
  double ring_rate;        // part of a link's rate that carries data
  double tree_rate;
  bool over_pcie;
};

// All from tuning.cc (baseLatencies, hwLatencies, ncclTopoTuneModel, ncclTopoGetAlgoTime) but two
// that were fitted: LL's NVLink hop (there 0.6 us) and Simple's base (there 8.4 us).
inline constexpr std::array<Protocol, 3> protocols{{
    // LL: a flag beside every word.
    {.base = 6.6 * us,
     .nvlink = {.ring = 1.0 * us, .tree = 1.0 * us},
     .pcie = {.ring = 1.0 * us, .tree = 1.0 * us},
     .network = {.ring = 2.7 * us, .tree = 5.0 * us},
     .network_post = 1.0 * us,
     .network_plateau = 1,
     .ring_rate = 0.5,
     .tree_rate = 0.92 / 3.8,
     .over_pcie = true},
    // LL128: a flag every 128 bytes, which needs NVLink inside the node.
    {.base = 14.0 * us,
     .nvlink = {.ring = 1.9 * us, .tree = 1.25 * us},
     .pcie = {.ring = 2.5 * us, .tree = 1.9 * us},
     .network = {.ring = 4.0 * us, .tree = 8.5 * us},
     .network_post = 1.0 * us,
     .network_plateau = 1,
     .ring_rate = 0.92,
     .tree_rate = 0.92 * 120 / 128,
     .over_pcie = false},
    // Simple: a fence after every chunk.
    {.base = 14.0 * us,
     .nvlink = {.ring = 3.4 * us, .tree = 4.0 * us},
     .pcie = {.ring = 5.7 * us, .tree = 4.0 * us},
     .network = {.ring = 14.0 * us, .tree = 14.0 * us},
     .network_post = 3.0 * us,
     .network_plateau = 1.4,
     .ring_rate = 1,
     .tree_rate = 0.92,
     .over_pcie = true},
}};

/// Each rank also copies its own part: that takes this much of a ring step. Fitted.
inline constexpr double own_part = 0.65;

// NVLS: the switch adds. Rate as tuning.cc (nvlsEfficiency, one of 16 channels idle); latency
// fitted (there 25 us).
inline constexpr double nvls_latency = 87 * us;
inline constexpr double nvls_channels = 15.0 / 16;
inline constexpr std::int64_t nvls_least_ranks = 5;  // stas00/ml-engineering network @744d01e, H200
inline constexpr double nvls_tree_hop = 20.9 * us;   // tuning.cc
inline constexpr double nvls_tree_rate = 0.92;       // as a tree's

// PAT: all-gather and reduce-scatter with one GPU a node (tuning.cc).
inline constexpr double pat_base = 8.0 * us;
inline constexpr double pat_level = 14.0 / 3.5 * us;
inline constexpr double pat_rank = 2.8 * us;
inline constexpr double pat_rate = 0.75;

/// All-to-all and sends: tuning.cc has no model of them. Fitted: small, middling, large messages.
struct PairwiseMode {
  double base;  // seconds
  double peer;  // seconds for each other rank
  double rate;
};
inline constexpr std::array<PairwiseMode, 3> pairwise{
    {{8.0 * us, 0.17 * us, 0.05}, {12.4 * us, 0.4 * us, 0.72}, {31.5 * us, 0.4 * us, 0.95}}};

/// What differs by GPU generation.
struct Generation {
  std::int64_t least_compute_capability;
  double link_efficiency;  // of NVLink's nominal rate: topo.h, rate a link / nominal rate a link
  double nvls_efficiency;  // tuning.cc; 0: none
  double latency_scale;    // of everything inside a node. Fitted for Ampere, Hopper and Blackwell
};

// Volta and what is not CUDA have Ampere's latency scale, and AMD's xGMI Volta's efficiency: no row
// tells.
inline constexpr std::array<Generation, 5> generations{{
    {100, 40.1 / 50, 0.74, 1.3},
    {90, 20.6 / 25, 0.85, 0.8},
    {80, 20.0 / 25, 0, 1.3},
    {70, 20.0 / 25, 0, 1.3},
    {0, 20.0 / 25, 0, 1.3},
}};

/// The newest generation that a GPU of this compute capability belongs to.
constexpr const Generation& generation_of(std::int64_t compute_capability) {
  for (const Generation& generation : generations) {
    if (compute_capability >= generation.least_compute_capability) return generation;
  }
  return generations.back();
}

/// The part of PCIe's nominal rate that is usable. Measured bus bandwidths of rings: 8 x RTX 5090
/// 28 of 63 GB/s (NCCL issue 1639), 8 x H100 PCIe 35-45 of 63, A100 PCIe 11-14 of 30 over 8 GPUs
/// and 21 over 4 or 2 (SimuMax configs/system/a100_pcie.json @4dcaae5). Between them; which depends
/// on sockets and switches.
inline constexpr double pcie_efficiency = 0.5;

/// The part of the network cards' nominal rate that is usable. Measured bus bandwidths of large
/// all-reduces: 86-96 of 100 GB/s (NCCL issue 1048, nccl-tests issue 119), 46-48 of 50 a card
/// (nccl-tests issue 290), 365 and 382 of 400 (stas00/ml-engineering network @744d01e).
inline constexpr double network_efficiency = 0.92;

}  // namespace zeroplan::tuning
