#pragma once
// Ranks that are processes with a GPU each.

#include <map>
#include <memory>
#include <set>

#include "validator/communicator/communicator.hpp"
#include "validator/cuda/cuda_device.hpp"
#include "validator/cuda/nccl_handle.hpp"

namespace zeroplan::engine {

/// Messages one way between two neighbours of a pipeline, on a stream of their own: a sender does
/// not wait for its receiver.
struct Link {
  std::unique_ptr<NcclHandle> handle;  // of two ranks: 0 sends, 1 receives
  CudaStream stream;
  CudaEvent copied;
};

/// A group over NCCL. NCCL rounds sums at every hop, in an order of its own, so numbers are not
/// those of other communicators for more than two ranks. All-reduces are a reduce-scatter and an
/// all-gather where the ranks can share the elements, so that ZeRO 0 rounds as ZeRO 1 to 3 do.
/// Collectives have a stream of their own, one for all of a group's, since NCCL runs a
/// communicator's in their order: what is begun runs beside the device's. Every call but these and
/// a send returns when it is done, and every wait ends within the watch's patience.
class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(CudaDevice& device, std::int64_t rank, std::int64_t size)
      : Communicator(rank, size), device_(device) {}

  /// For collectives. All ranks of the group call it.
  void connect(const ncclUniqueId& id, const Watch& watch);
  /// For messages from `from` to `to`, one of them this rank. Both call it, and an empty message
  /// has gone when it returns.
  void link(const ncclUniqueId& id, std::int64_t from, std::int64_t to, const Watch& watch);

  /// Waits for messages on their way, and ends what was connected. All ranks call it.
  void finish();

 protected:
  void do_all_reduce(Half data) override;
  void do_all_reduce(Wide data, Reduction reduction) override;
  void do_reduce_scatter(Half data) override;
  void do_all_gather(Half data) override;
  Pending do_start_reduce_scatter(Half data) override;
  Pending do_start_all_gather(Half data) override;
  void do_send(ConstHalf data, std::int64_t to) override;
  void do_receive(Half data, std::int64_t from) override;

 private:
  template <class Call>
  Pending begin(const char* name, std::int64_t elements, Call&& call);
  template <class Call>
  Pending enqueue(const char* name, Call&& call);
  Link& link_of(std::int64_t from, std::int64_t to) { return links_.at({from, to}); }

  CudaDevice& device_;
  std::unique_ptr<NcclHandle> all_;
  CudaStream stream_;                                            // of collectives
  std::map<std::pair<std::int64_t, std::int64_t>, Link> links_;  // from, to
  std::set<std::pair<std::string_view, std::int64_t>> seen_;     // calls and sizes
};

}  // namespace zeroplan::engine
