#pragma once
// The GPUs of this node in groups of neighbours, each with an NCCL communicator, driven by this one
// process.

#include <vector>

#include "cost_model/question/collective.hpp"
#include "gpu_probe/cuda/check.hpp"

namespace zeroplan {

class NodeGroups {
 public:
  /// Groups of `ranks` GPUs; what does not fill a group stays out. Throws when NCCL does not get
  /// ready within a minute.
  NodeGroups(int devices, int ranks);
  NodeGroups(const NodeGroups&) = delete;
  NodeGroups& operator=(const NodeGroups&) = delete;
  ~NodeGroups();

  /// Gets buffers for payloads up to this.
  void allocate(std::size_t payload);

  /// Enqueues one collective in every group at once; `payload` as in collective.hpp, rounded down
  /// to what the ranks can share.
  void run(Collective collective, std::size_t payload);

  /// Waits for every GPU. Throws when NCCL reports an error, or after a minute: the communicators
  /// are then aborted.
  void synchronize();

  /// Seconds from here to `stop`, of the slowest GPU.
  void start();
  double stop();

 private:
  struct Member {
    int device = 0;
    ncclComm_t communicator = nullptr;
    CudaStream stream;
    CudaEvent begin, end;
    DeviceMemory input, output;
  };
  void use(const Member& member) const { check(cudaSetDevice(member.device), "cudaSetDevice"); }
  void abort();

  int ranks_;
  std::vector<Member> members_;
};

}  // namespace zeroplan
