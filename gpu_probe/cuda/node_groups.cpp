// How do groups of this node's GPUs communicate? Front door: NodeGroups.
#include "gpu_probe/cuda/node_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <thread>

#include "gpu_probe/cuda/kernels.hpp"
#include "gpu_probe/environment_error.hpp"

namespace zeroplan {
namespace {

using Clock = std::chrono::steady_clock;
constexpr ncclDataType_t type = ncclBfloat16;

std::vector<ncclComm_t> connected(int first_device, int ranks) {
  std::vector<ncclComm_t> communicators(static_cast<std::size_t>(ranks));
  ncclUniqueId id{};
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  check(ncclGroupStart(), "ncclGroupStart");
  for (int rank = 0; rank < ranks; ++rank) {
    check(cudaSetDevice(first_device + rank), "cudaSetDevice");
    check(ncclCommInitRank(&communicators[static_cast<std::size_t>(rank)], ranks, id, rank),
          "ncclCommInitRank");
  }
  check(ncclGroupEnd(), "ncclGroupEnd");
  return communicators;
}

// What `work` returns or throws. Communicators that do not block could be waited for, but start a
// thread at every call, which small collectives would be measured with. So the work has a thread,
// which is left behind when patience ends: it owns all that it touches, and the program then ends.
template <class Work>
auto within(std::chrono::seconds patience, Work work) {
  std::packaged_task<decltype(work())()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(patience) == std::future_status::timeout) {
    throw EnvironmentError(fmt::format("NCCL did not get ready within {} s", patience.count()));
  }
  return result.get();
}

}  // namespace

NodeGroups::NodeGroups(int devices, int ranks, std::chrono::seconds patience)
    : ranks_(ranks), patience_(patience) {
  for (int device = 0; device + ranks <= devices; device += ranks) {
    const std::vector<ncclComm_t> communicators =
        within(patience, [device, ranks] { return connected(device, ranks); });
    for (int rank = 0; rank < ranks; ++rank) {
      check(cudaSetDevice(device + rank), "cudaSetDevice");
      members_.push_back(
          {.device = device + rank, .communicator = communicators[static_cast<std::size_t>(rank)]});
    }
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

void NodeGroups::enqueue(std::size_t member, Collective collective, std::size_t payload) const {
  const auto ranks = static_cast<std::size_t>(ranks_);
  const std::size_t part = payload / kernels::bf16_bytes / ranks;  // elements of one rank
  const Member& m = members_[member];
  const auto rank = static_cast<int>(member % ranks);
  const void* in = m.input.get();
  void* out = m.output.get();
  cudaStream_t stream = m.stream.get();
  switch (collective) {
    case Collective::all_reduce:
      return check(ncclAllReduce(in, out, part * ranks, type, ncclSum, m.communicator, stream),
                   "ncclAllReduce");
    case Collective::all_gather:
      return check(ncclAllGather(in, out, part, type, m.communicator, stream), "ncclAllGather");
    case Collective::reduce_scatter:
      return check(ncclReduceScatter(in, out, part, type, ncclSum, m.communicator, stream),
                   "ncclReduceScatter");
    case Collective::broadcast:
      return check(ncclBroadcast(in, out, part * ranks, type, 0, m.communicator, stream),
                   "ncclBroadcast");
    case Collective::all_to_all:
      check(ncclGroupStart(), "ncclGroupStart");
      for (int peer = 0; peer < ranks_; ++peer) {
        const std::size_t at = static_cast<std::size_t>(peer) * part * kernels::bf16_bytes;
        check(ncclSend(static_cast<const std::byte*>(in) + at, part, type, peer, m.communicator,
                       stream),
              "ncclSend");
        check(ncclRecv(static_cast<std::byte*>(out) + at, part, type, peer, m.communicator, stream),
              "ncclRecv");
      }
      return check(ncclGroupEnd(), "ncclGroupEnd");
    case Collective::send_recv:  // every rank to the next, as a full pipeline does
      check(ncclGroupStart(), "ncclGroupStart");
      check(ncclSend(in, part * ranks, type, (rank + 1) % ranks_, m.communicator, stream),
            "ncclSend");
      check(ncclRecv(out, part * ranks, type, (rank + ranks_ - 1) % ranks_, m.communicator, stream),
            "ncclRecv");
      return check(ncclGroupEnd(), "ncclGroupEnd");
  }
}

double NodeGroups::run(Collective collective, std::size_t payload, int times) {
  std::vector<std::exception_ptr> failures(members_.size());
  const auto launch = [&](std::size_t i) {
    try {
      const Member& member = members_[i];
      use(member);
      enqueue(i, collective, payload);  // in which they wait for the last thread to begin
      member.begin.record(member.stream);
      for (int t = 0; t < times; ++t) enqueue(i, collective, payload);
      member.end.record(member.stream);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < members_.size(); ++i) threads.emplace_back(launch, i);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  synchronize();
  double slowest = 0;
  for (const Member& member : members_) {
    slowest = std::max(slowest, seconds_between(member.begin, member.end));
  }
  return slowest;
}

void NodeGroups::abort() {
  for (Member& member : members_) {
    if (member.communicator != nullptr) ncclCommAbort(member.communicator);
    member.communicator = nullptr;
  }
}

void NodeGroups::synchronize() {
  const Clock::time_point until = Clock::now() + patience_;
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
        throw EnvironmentError(
            fmt::format("a collective did not end within {} s; it was aborted", patience_.count()));
      }
      std::this_thread::yield();
    }
  }
}

}  // namespace zeroplan
