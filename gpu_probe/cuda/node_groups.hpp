#pragma once
// The GPUs of this node in groups of neighbours, each with an NCCL communicator, driven by this one
// process.

#include <chrono>
#include <vector>

#include "cost_model/question/collective.hpp"
#include "gpu_probe/cuda/check.hpp"

namespace zeroplan {

class NodeGroups {
 public:
  /// Groups of `ranks` GPUs; what does not fill a group stays out. Throws when NCCL does not get
  /// ready, or later a collective does not end, within `patience`.
  NodeGroups(int devices, int ranks, std::chrono::seconds patience);
  NodeGroups(const NodeGroups&) = delete;
  NodeGroups& operator=(const NodeGroups&) = delete;
  ~NodeGroups();

  /// Gets buffers for payloads up to this.
  void allocate(std::size_t payload);

  /// Enqueues `times` collectives in every group at once; `payload` as in collective.hpp, rounded
  /// down to what the ranks can share. A thread a GPU: launches by one alone would take longer than
  /// small collectives do. One more goes before, so that all begin together. Returns the seconds of
  /// the slowest GPU, by its own clock, once all have ended. Throws when NCCL reports an error, or
  /// patience ends: the communicators are then aborted.
  double run(Collective collective, std::size_t payload, int times = 1);

 private:
  struct Member {
    int device = 0;
    ncclComm_t communicator = nullptr;
    CudaStream stream;
    CudaEvent begin, end;
    DeviceMemory input, output;
  };
  static void use(const Member& member) { check(cudaSetDevice(member.device), "cudaSetDevice"); }
  void enqueue(std::size_t member, Collective collective, std::size_t payload) const;
  void synchronize();
  void abort();

  int ranks_;
  std::chrono::seconds patience_;
  std::vector<Member> members_;
};

}  // namespace zeroplan
