#pragma once
// One NCCL communicator, every wait of which ends.

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "gpu_probe/cuda/check.hpp"

namespace zeroplan::engine {

/// How long to wait for peers, and how to know that one is gone.
struct Watch {
  std::chrono::milliseconds patience{60'000};
  std::function<std::optional<std::string>()> lost_peer;  // a message once one is
};

/// A communicator that is made without blocking (NCCL 2.14 and later). Every wait polls: for NCCL's
/// own errors, for a lost peer, for the end of patience; each aborts the communicator and throws
/// PeerLost, or EnvironmentError for what CUDA and NCCL say.
class NcclHandle {
 public:
  NcclHandle(const ncclUniqueId& id, std::int64_t size, std::int64_t rank, const Watch& watch);
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;
  /// Aborts what was not finished.
  ~NcclHandle();

  ncclComm_t get() const { return communicator_; }

  /// Waits until NCCL has accepted the call that returned `status`.
  void settle(ncclResult_t status, const char* call);
  /// Waits until the stream has done what NCCL was asked for.
  void wait(const CudaStream& stream, const char* what);
  /// Waits until the event has passed.
  void wait(const CudaEvent& event, const char* what);
  /// Ends the communicator together with all its ranks.
  void finish();

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  Deadline deadline() const { return std::chrono::steady_clock::now() + watch_.patience; }
  template <class Query>
  void wait_until(Query&& query, const char* what);
  ncclResult_t state();
  /// Throws, after aborting, when there is nothing left to wait for.
  void watch(Deadline until, const char* what);
  void abort() noexcept;

  const Watch& watch_;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace zeroplan::engine
