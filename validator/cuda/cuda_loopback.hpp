#pragma once
// Ranks that are threads of one process and share a GPU, a stream each.

#include "validator/communicator/loopback.hpp"
#include "validator/cuda/cuda_device.hpp"

namespace zeroplan::engine {

/// Meets as host ranks do. A rank waits for its stream before it shows a buffer and before it
/// leaves, so nobody reads what is still being written.
class CudaLoopback final : public Communicator {
 public:
  /// One of up to 64 ranks.
  CudaLoopback(CudaDevice& device, Meeting& meeting, std::int64_t rank, std::int64_t size);

 protected:
  void do_all_reduce(Half data) override;
  void do_all_reduce(Wide data, Reduction reduction) override;
  void do_reduce_scatter(Half data) override;
  void do_all_gather(Half data) override;
  void do_send(ConstHalf data, std::int64_t to) override;
  void do_receive(Half data, std::int64_t from) override;

 private:
  CudaDevice& device_;
  Meeting& meeting_;
};

}  // namespace zeroplan::engine
