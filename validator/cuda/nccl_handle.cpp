// How does a wait for NCCL end? Front door: NcclHandle.
#include "validator/cuda/nccl_handle.hpp"

#include <fmt/format.h>

#include <thread>

#include "gpu_probe/environment_error.hpp"
#include "validator/communicator/communicator.hpp"

namespace zeroplan::engine {
namespace {

// Long enough to leave the processor to the other ranks of a small machine.
constexpr std::chrono::microseconds pause{50};

}  // namespace

NcclHandle::NcclHandle(const ncclUniqueId& id,
                       std::int64_t size,
                       std::int64_t rank,
                       const Watch& watch)
    : watch_(watch) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t status = ncclCommInitRankConfig(&communicator_, static_cast<int>(size), id,
                                                     static_cast<int>(rank), &config);
  try {
    settle(status, "ncclCommInitRankConfig");
  } catch (...) {
    abort();  // no destructor runs for what was not constructed
    throw;
  }
}

NcclHandle::~NcclHandle() {
  abort();
}

void NcclHandle::abort() noexcept {
  if (communicator_ != nullptr) ncclCommAbort(communicator_);
  communicator_ = nullptr;
}

ncclResult_t NcclHandle::state() {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(communicator_, &state), "ncclCommGetAsyncError");
  return state;
}

void NcclHandle::watch(Deadline until, const char* what) {
  if (const auto lost = watch_.lost_peer ? watch_.lost_peer() : std::nullopt) {
    abort();
    throw PeerLost(*lost);
  }
  if (std::chrono::steady_clock::now() > until) {
    abort();
    throw PeerLost(fmt::format("no answer from a peer within {} s in {}",
                               std::chrono::duration<double>(watch_.patience).count(), what));
  }
  std::this_thread::sleep_for(pause);
}

void NcclHandle::settle(ncclResult_t status, const char* call) {
  const Deadline until = deadline();
  while (status == ncclInProgress) {
    watch(until, call);
    status = state();
  }
  if (status == ncclSuccess) return;
  abort();
  check(status, call);
}

void NcclHandle::wait(const CudaStream& stream, const char* what) {
  wait_until([&] { return cudaStreamQuery(stream.get()); }, what);
}

void NcclHandle::wait(const CudaEvent& event, const char* what) {
  wait_until([&] { return cudaEventQuery(event.get()); }, what);
}

template <class Query>
void NcclHandle::wait_until(Query&& query, const char* what) {
  const Deadline until = deadline();
  for (;;) {
    const cudaError_t done = query();
    if (done == cudaSuccess) return;
    if (done != cudaErrorNotReady) check(done, what);
    const ncclResult_t now = state();
    if (now != ncclSuccess && now != ncclInProgress) settle(now, what);
    watch(until, what);
  }
}

void NcclHandle::finish() {
  settle(ncclCommFinalize(communicator_), "ncclCommFinalize");
  const ncclComm_t ended = communicator_;
  communicator_ = nullptr;
  check(ncclCommDestroy(ended), "ncclCommDestroy");
}

}  // namespace zeroplan::engine
