#pragma once
// A group of ranks as one of them sees it. Every call is counted; kinds of communicators differ in
// what they do with the data.

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "cost_model/question/collective.hpp"
#include "validator/device/device.hpp"

namespace zeroplan::engine {

/// Another rank failed, or did not come in time.
class PeerLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Reduction { sum, maximum };

/// A collective that was begun. Its buffer stays as it is until the wait.
struct Pending {
  std::function<void()> wait;  // makes what the device does next see the result; empty: it is done
  Stopwatch::Interval travelled;  // the call's own, where it is not the device's

  void operator()() const {
    if (wait) wait();
  }
};

/// What one rank did with its peers: calls by kind and by payload as collective.hpp has it. Of
/// messages, those it sent.
using Traffic = std::map<std::pair<Collective, std::int64_t>, std::int64_t>;

/// Collectives work in place and add up fp32 in the order of ranks, rounding once. All ranks of a
/// group call the same, in the same order. Nothing is done or counted in a group of one.
class Communicator {
 public:
  Communicator(std::int64_t rank, std::int64_t size) : rank_(rank), size_(size) {}
  virtual ~Communicator() = default;

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }

  /// Each rank gets the sum of all buffers.
  void all_reduce(Half data);
  void all_reduce(Wide data, Reduction reduction);
  /// Each rank gets the sum of its own of size() equal parts.
  void reduce_scatter(Half data);
  /// Each rank has its own of size() equal parts and gets all.
  void all_gather(Half data);
  /// Collectives that run beside what the device does meanwhile, where the kind of communicator
  /// can; others are done when they return.
  Pending start_reduce_scatter(Half data);
  Pending start_all_gather(Half data);
  /// A message to a rank, which does not wait until it is received.
  void send(ConstHalf data, std::int64_t to);
  void receive(Half data, std::int64_t from);

  /// From here on every call is timed as one of this group; null: no longer.
  void time_with(Stopwatch* watch, std::string_view group) {
    watch_ = watch;
    group_ = group;
  }

  const Traffic& traffic() const { return traffic_; }
  void forget_traffic() { traffic_.clear(); }

 protected:
  virtual void do_all_reduce(Half data) = 0;
  virtual void do_all_reduce(Wide data, Reduction reduction) = 0;
  virtual void do_reduce_scatter(Half data) = 0;
  virtual void do_all_gather(Half data) = 0;
  virtual Pending do_start_reduce_scatter(Half data) {
    do_reduce_scatter(data);
    return {};
  }
  virtual Pending do_start_all_gather(Half data) {
    do_all_gather(data);
    return {};
  }
  virtual void do_send(ConstHalf data, std::int64_t to) = 0;
  virtual void do_receive(Half data, std::int64_t from) = 0;

 private:
  bool alone() const { return size_ == 1; }
  template <class Work>
  void run(Collective collective, std::int64_t bytes, Work&& work, bool counts = true);
  template <class Start>
  Pending start(Collective collective, std::int64_t bytes, Start&& start);

  std::int64_t rank_;
  std::int64_t size_;
  Traffic traffic_;
  Stopwatch* watch_ = nullptr;
  std::string_view group_;
};

}  // namespace zeroplan::engine
