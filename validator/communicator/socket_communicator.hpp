#pragma once
// Ranks that are processes of one or several nodes and talk over TCP.

#include <vector>

#include "validator/communicator/communicator.hpp"
#include "validator/communicator/mesh.hpp"

namespace zeroplan::engine {

/// Adds up in the same order as Loopback: the same numbers, bit for bit.
class SocketCommunicator final : public Communicator {
 public:
  /// `members`: the group's ranks in the mesh. Two that share another group too use both in the
  /// same order.
  SocketCommunicator(Mesh& mesh, std::int64_t rank, std::vector<std::int64_t> members)
      : Communicator(rank, static_cast<std::int64_t>(members.size())),
        mesh_(mesh),
        members_(std::move(members)) {}

 protected:
  void do_all_reduce(Half data) override;
  void do_all_reduce(Wide data, Reduction reduction) override;
  void do_reduce_scatter(Half data) override;
  void do_all_gather(Half data) override;
  void do_send(ConstHalf data, std::int64_t to) override;
  void do_receive(Half data, std::int64_t from) override;

 private:
  template <class Value>
  void combine(View<Value> data, Reduction reduction, const char* name);
  template <class Value>
  void spread(View<Value> data, const char* name);
  template <class Value>
  View<Value> share(View<Value> data, std::int64_t rank) const;
  std::int64_t member(std::int64_t rank) const { return members_[static_cast<std::size_t>(rank)]; }

  Mesh& mesh_;
  std::vector<std::int64_t> members_;
};

}  // namespace zeroplan::engine
