// NCCL without a device: communicators are made at once and move nothing, so every rank keeps what
// it had. Two ranks of one host on one GPU are refused, as NCCL refuses them.
#include <nccl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

#include "tests/fake_gpu/fault.hpp"
#include "tests/fake_gpu/order.hpp"

namespace {

using namespace zeroplan::fake;

ncclResult_t after(Fault fault) {
  return fault == Fault::none && !broken() ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t call() {
  return after(at_call());
}

// FAKE_GPU_LAUNCHES: a file to which each collective adds its communicator and its thread.
ncclResult_t collective(ncclComm_t communicator) {
  if (const char* name = std::getenv("FAKE_GPU_LAUNCHES")) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    std::ofstream(name, std::ios::app) << communicator << ' ' << std::this_thread::get_id() << '\n';
  }
  return call();
}

std::size_t bytes_of(ncclDataType_t type) {
  return type == ncclFloat32 ? 4 : type == ncclBfloat16 ? 2 : 1;
}

// Reads one buffer and writes another, or part of the same.
ncclResult_t collective(ncclComm_t communicator,
                        cudaStream_t stream,
                        const void* read,
                        std::size_t read_bytes,
                        void* written,
                        std::size_t written_bytes) {
  touches(stream, read, read_bytes, false, "a collective");
  touches(stream, written, written_bytes, true, "a collective");
  return collective(communicator);
}

// Of an all-gather or a reduce-scatter, the whole from its part: a communicator's ranks.
std::size_t ranks_of(ncclComm_t communicator) {
  return *reinterpret_cast<const std::size_t*>(communicator);
}

ncclResult_t connected(ncclComm_t* communicator, int ranks) {
  const Fault fault = at_allocation();
  const bool shared = ranks > 1 && setting("LOCAL_WORLD_SIZE", 1) > setting("FAKE_GPU_DEVICES", 1);
  if (shared && std::getenv("NCCL_HOSTID") == nullptr) return ncclInvalidUsage;
  *communicator = reinterpret_cast<ncclComm_t>(std::malloc(sizeof(std::size_t)));
  *reinterpret_cast<std::size_t*>(*communicator) = static_cast<std::size_t>(ranks);
  return after(fault);
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = 22800;
  return call();
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 1, sizeof *id);
  return call();
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError    ? "remote process exited or there was a network error"
         : result == ncclInvalidUsage ? "invalid usage"
                                      : "unhandled cuda error";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId, int) {
  return connected(communicator, ranks);
}
ncclResult_t ncclCommInitRankConfig(
    ncclComm_t* communicator, int ranks, ncclUniqueId, int, ncclConfig_t*) {
  return connected(communicator, ranks);
}
ncclResult_t ncclCommFinalize(ncclComm_t) {
  return call();
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  std::free(communicator);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  std::free(communicator);
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = peer_lost() ? ncclRemoteError : ncclSuccess;
  return call();
}
ncclResult_t ncclGroupStart() {
  return call();
}
ncclResult_t ncclGroupEnd() {
  return call();
}
ncclResult_t ncclAllReduce(const void* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           ncclRedOp_t,
                           ncclComm_t c,
                           cudaStream_t stream) {
  const std::size_t bytes = count * bytes_of(type);
  return collective(c, stream, from, bytes, to, bytes);
}
ncclResult_t ncclAllGather(const void* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           ncclComm_t c,
                           cudaStream_t stream) {
  const std::size_t part = count * bytes_of(type);
  return collective(c, stream, from, part, to, ranks_of(c) * part);
}
ncclResult_t ncclReduceScatter(const void* from,
                               void* to,
                               std::size_t count,
                               ncclDataType_t type,
                               ncclRedOp_t,
                               ncclComm_t c,
                               cudaStream_t stream) {
  const std::size_t part = count * bytes_of(type);
  return collective(c, stream, from, ranks_of(c) * part, to, part);
}
ncclResult_t ncclBroadcast(
    const void*, void*, std::size_t, ncclDataType_t, int, ncclComm_t c, cudaStream_t) {
  return collective(c);
}
ncclResult_t ncclSend(const void* from,
                      std::size_t count,
                      ncclDataType_t type,
                      int,
                      ncclComm_t c,
                      cudaStream_t stream) {
  return collective(c, stream, from, count * bytes_of(type), nullptr, 0);
}
ncclResult_t ncclRecv(
    void* to, std::size_t count, ncclDataType_t type, int, ncclComm_t c, cudaStream_t stream) {
  return collective(c, stream, nullptr, 0, to, count * bytes_of(type));
}
}
