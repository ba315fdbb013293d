// What do NCCL's collectives take, of time and of memory? Front doors: measure_collectives,
// measure_communicators.
#include <algorithm>
#include <limits>

#include "gpu_probe/cuda/node_groups.hpp"
#include "gpu_probe/cuda/parts.hpp"

namespace zeroplan {
namespace {

// 2, 4, 8, ... and all.
std::vector<int> group_sizes(int devices) {
  std::vector<int> sizes;
  for (int ranks = 2; ranks < devices; ranks *= 2) sizes.push_back(ranks);
  if (devices > 1) sizes.push_back(devices);
  return sizes;
}

// Means of batches: single small collectives are shorter than the pauses between launches, so
// these times hold for collectives that follow each other, as they do in a step.
Samples sampled(NodeGroups& groups, Collective collective, std::size_t payload) {
  constexpr int warm_ups = 5;
  constexpr int samples = 7;
  constexpr int launches = 20;
  groups.run(collective, payload, warm_ups);
  Samples seconds;
  for (int s = 0; s < samples; ++s) {
    seconds.push_back(groups.run(collective, payload, launches) / launches);
  }
  return seconds;
}

std::vector<std::size_t> free_memories(int devices) {
  std::vector<std::size_t> free;
  for (int device = 0; device < devices; ++device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    free.push_back(free_memory());
  }
  return free;
}

Bytes most_fallen(const std::vector<std::size_t>& before, const std::vector<std::size_t>& after) {
  Bytes most{std::numeric_limits<std::int64_t>::min()};
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto fallen = static_cast<std::int64_t>(before[i]) - static_cast<std::int64_t>(after[i]);
    most = std::max(most, Bytes{fallen});
  }
  return most;
}

CommunicatorMemory communicator_memory(int devices, int ranks, std::chrono::seconds patience) {
  constexpr std::size_t small = 1 << 10;
  constexpr std::size_t large = std::size_t{64} << 20;
  CommunicatorMemory memory{.ranks = ranks};
  std::vector<std::size_t> before = free_memories(devices);
  const auto step = [&](Bytes& into) {
    const std::vector<std::size_t> now = free_memories(devices);
    into = most_fallen(before, now);
    before = now;
  };
  NodeGroups groups(devices, ranks, patience);
  step(memory.created);
  groups.allocate(large);
  before = free_memories(devices);  // our own buffers do not count
  groups.run(Collective::all_reduce, small);
  step(memory.after_small);
  groups.run(Collective::all_reduce, large);
  step(memory.after_large);
  groups.run(Collective::all_gather, large);
  groups.run(Collective::reduce_scatter, large);
  step(memory.after_sharding);
  return memory;
}

}  // namespace

std::vector<CommunicatorMemory> measure_communicators(int devices, std::chrono::seconds patience) {
  std::vector<CommunicatorMemory> all{communicator_memory(devices, 1, patience)};
  for (const int ranks : group_sizes(devices)) {
    all.push_back(communicator_memory(devices, ranks, patience));
  }
  return all;
}

std::vector<CollectiveSamples> measure_collectives(int devices,
                                                   Bytes largest,
                                                   std::chrono::seconds patience) {
  constexpr Bytes smallest{1 << 10};
  std::vector<CollectiveSamples> all;
  for (const int ranks : group_sizes(devices)) {
    NodeGroups groups(devices, ranks, patience);
    groups.allocate(static_cast<std::size_t>(largest.count()));
    for (std::size_t c = 0; c < names<Collective>().size(); ++c) {
      const auto collective = static_cast<Collective>(c);
      for (Bytes payload = smallest; payload <= largest; payload += payload) {
        all.push_back(
            {.collective = collective,
             .ranks = ranks,
             .payload = payload,
             .seconds = sampled(groups, collective, static_cast<std::size_t>(payload.count()))});
      }
    }
  }
  return all;
}

}  // namespace zeroplan
