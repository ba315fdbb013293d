// How do groups of this node's GPUs communicate? Front door: NodeGroups.
#include "gpu_probe/cuda/node_groups.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "gpu_probe/environment_error.hpp"

namespace zeroplan {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds patience{60};
constexpr std::size_t element = 2;  // bf16
constexpr ncclDataType_t type = ncclBfloat16;

}  // namespace

NodeGroups::NodeGroups(int devices, int ranks) : ranks_(ranks) {
  for (int device = 0; device + ranks <= devices; device += ranks) {
    ncclUniqueId id{};
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    const std::size_t first = members_.size();
    for (int rank = 0; rank < ranks; ++rank) {
      check(cudaSetDevice(device + rank), "cudaSetDevice");
      members_.push_back({.device = device + rank});
    }
    check(ncclGroupStart(), "ncclGroupStart");
    for (int rank = 0; rank < ranks; ++rank) {
      Member& member = members_[first + static_cast<std::size_t>(rank)];
      use(member);
      check(ncclCommInitRank(&member.communicator, ranks, id, rank), "ncclCommInitRank");
    }
    check(ncclGroupEnd(), "ncclGroupEnd");
  }
}

NodeGroups::~NodeGroups() {
  for (const Member& member : members_) {
    if (member.communicator != nullptr) ncclCommDestroy(member.communicator);
  }
}

void NodeGroups::allocate(std::size_t payload) {
  for (Member& member : members_) {
    use(member);
    member.input = DeviceMemory(payload);
    member.output = DeviceMemory(payload);
  }
}

void NodeGroups::run(Collective collective, std::size_t payload) {
  const auto ranks = static_cast<std::size_t>(ranks_);
  const std::size_t part = payload / element / ranks;  // elements of one rank
  check(ncclGroupStart(), "ncclGroupStart");
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& m = members_[i];
    use(m);
    const auto rank = static_cast<int>(i % ranks);
    const void* in = m.input.get();
    void* out = m.output.get();
    cudaStream_t stream = m.stream.get();
    switch (collective) {
      case Collective::all_reduce:
        check(ncclAllReduce(in, out, part * ranks, type, ncclSum, m.communicator, stream),
              "ncclAllReduce");
        break;
      case Collective::all_gather:
        check(ncclAllGather(in, out, part, type, m.communicator, stream), "ncclAllGather");
        break;
      case Collective::reduce_scatter:
        check(ncclReduceScatter(in, out, part, type, ncclSum, m.communicator, stream),
              "ncclReduceScatter");
        break;
      case Collective::broadcast:
        check(ncclBroadcast(in, out, part * ranks, type, 0, m.communicator, stream),
              "ncclBroadcast");
        break;
      case Collective::all_to_all:
        for (int peer = 0; peer < ranks_; ++peer) {
          const std::size_t at = static_cast<std::size_t>(peer) * part * element;
          check(ncclSend(static_cast<const std::byte*>(in) + at, part, type, peer, m.communicator,
                         stream),
                "ncclSend");
          check(
              ncclRecv(static_cast<std::byte*>(out) + at, part, type, peer, m.communicator, stream),
              "ncclRecv");
        }
        break;
      case Collective::send_recv:  // every rank to the next, as a full pipeline does
        check(ncclSend(in, part * ranks, type, (rank + 1) % ranks_, m.communicator, stream),
              "ncclSend");
        check(
            ncclRecv(out, part * ranks, type, (rank + ranks_ - 1) % ranks_, m.communicator, stream),
            "ncclRecv");
        break;
    }
  }
  check(ncclGroupEnd(), "ncclGroupEnd");
}

void NodeGroups::abort() {
  for (Member& member : members_) {
    if (member.communicator != nullptr) ncclCommAbort(member.communicator);
    member.communicator = nullptr;
  }
}

void NodeGroups::synchronize() {
  const Clock::time_point until = Clock::now() + patience;
  for (Member& member : members_) {
    use(member);
    for (;;) {
      const cudaError_t state = cudaStreamQuery(member.stream.get());
      if (state == cudaSuccess) break;
      if (state != cudaErrorNotReady) check(state, "cudaStreamQuery");
      ncclResult_t failure = ncclSuccess;
      check(ncclCommGetAsyncError(member.communicator, &failure), "ncclCommGetAsyncError");
      if (failure != ncclSuccess || Clock::now() > until) {
        abort();
        check(failure, "NCCL");
        throw EnvironmentError("a collective did not end within a minute; it was aborted");
      }
      std::this_thread::yield();
    }
  }
}

void NodeGroups::start() {
  for (const Member& member : members_) {
    use(member);
    member.begin.record(member.stream);
  }
}

double NodeGroups::stop() {
  for (const Member& member : members_) {
    use(member);
    member.end.record(member.stream);
  }
  synchronize();
  double slowest = 0;
  for (const Member& member : members_) {
    slowest = std::max(slowest, seconds_between(member.begin, member.end));
  }
  return slowest;
}

}  // namespace zeroplan
