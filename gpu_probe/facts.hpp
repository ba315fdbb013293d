#pragma once
// What a probe saw of this machine, as it saw it: samples, not yet judged.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/kernel/gemm.hpp"
#include "cost_model/question/collective.hpp"
#include "gpu_probe/devices.hpp"

namespace zeroplan {

using Samples = std::vector<double>;  // seconds of one execution each

/// What lies in device memory before the first tensor, and how it is cut. Differences of the free
/// memory that the driver reports, so other processes on the GPU would show.
struct MemoryFacts {
  Bytes total;                    // as a process may allocate it
  Bytes context;                  // after the first call
  Bytes modules;                  // once the kernels of this program are loaded
  Bytes cublas;                   // cuBLASLt's handle and its first product
  Bytes allocation_step;          // least by which cudaMalloc lets free memory fall
  Bytes minimum_granularity;      // of physical memory that is mapped by hand
  Bytes recommended_granularity;  // of memory mapped by hand, as the driver recommends
};

/// Clocks of the first GPU while products run, and the driver's words for what holds them back.
struct ClockFacts {
  std::int64_t megahertz = 0;  // of its multiprocessors
  std::int64_t highest_megahertz = 0;
  std::vector<std::string> held_back_by;
};

struct GemmSamples {
  Gemm gemm;
  Samples seconds;
};

enum class Transfer { copy, read, write, to_device, to_host, both_ways };
template <>
struct Spellings<Transfer> {
  static constexpr std::array<std::string_view, 6> value{"copy",      "read",    "write",
                                                         "to_device", "to_host", "both_ways"};
};

/// Transfers on the first GPU: memory to memory, or to and from page-locked host memory.
struct TransferSamples {
  Transfer transfer = Transfer::copy;
  Bytes moved;  // read and written together
  Samples seconds;
};

struct PeerSamples {
  int from = 0;
  int to = 0;
  bool direct = false;  // without a stop in host memory
  Bytes moved;
  Samples seconds;
};

/// One line of what nccl-tests would print: all groups of so many neighbouring GPUs at once.
struct CollectiveSamples {
  Collective collective = Collective::all_reduce;
  int ranks = 2;
  Bytes payload;
  Samples seconds;  // the slowest rank's
};

/// By how much free memory fell on the GPU where it fell most, step by step, since NCCL allocates
/// when an algorithm is first used.
struct CommunicatorMemory {
  int ranks = 1;
  Bytes created;
  Bytes after_small;     // a first all-reduce of few bytes
  Bytes after_large;     // a first all-reduce of many bytes
  Bytes after_sharding;  // all-gather and reduce-scatter
};

struct ProbeFacts {
  std::string taken;  // when, UTC
  std::string host;
  std::string driver, cuda, nccl, cublas;  // versions
  std::vector<Device> devices;
  MemoryFacts memory;
  std::vector<GemmSamples> gemms;
  std::optional<ClockFacts> clocks;  // where the driver's management library is
  std::vector<TransferSamples> transfers;
  std::vector<PeerSamples> peers;
  std::vector<CollectiveSamples> collectives;
  std::vector<CommunicatorMemory> communicators;
};

}  // namespace zeroplan
