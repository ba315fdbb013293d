#pragma once
// Ranks that are threads of one process: each reads what the others left in place.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "validator/communicator/communicator.hpp"

namespace zeroplan::engine {

/// Whether the ranks of a run still work together. The first failure ends every wait of all.
class Alarm {
 public:
  explicit Alarm(std::chrono::milliseconds patience) : patience_(patience) {}

  /// Makes every present and future wait throw PeerLost with this message; the first one counts.
  void raise(const std::string& message);
  /// Waits until `done`, asked while the lock is held. Throws PeerLost on alarm unless it is done,
  /// and raises the alarm when patience ends.
  template <class Done>
  void wait(std::unique_lock<std::mutex>& lock, const char* what, Done&& done);

  std::mutex mutex;
  std::condition_variable changed;

 private:
  std::chrono::milliseconds patience_;
  std::optional<std::string> message_;  // guarded by mutex
};

/// What the ranks of one group share. Outlives their communicators.
class Meeting {
 public:
  Meeting(Alarm& alarm, std::int64_t ranks)
      : alarm_(alarm), posted_(static_cast<std::size_t>(ranks)) {}

  /// Posts this rank's buffer, and returns when all have: then it must leave.
  const std::vector<void*>& post(std::int64_t rank, void* data);
  /// Returns when all ranks are done with the posted buffers, whatever happened meanwhile.
  void leave();

  void send(std::int64_t from, std::int64_t to, std::vector<Bf16> message);
  std::vector<Bf16> receive(std::int64_t from, std::int64_t to);

 private:
  Alarm& alarm_;
  std::vector<void*> posted_;
  std::size_t arrived_ = 0;
  std::size_t working_ = 0;  // ranks between post and leave
  std::int64_t round_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, std::deque<std::vector<Bf16>>> mail_;
};

class Loopback final : public Communicator {
 public:
  Loopback(Meeting& meeting, std::int64_t rank, std::int64_t size)
      : Communicator(rank, size), meeting_(meeting) {}

 protected:
  void do_all_reduce(Half data) override;
  void do_all_reduce(Wide data, Reduction reduction) override;
  void do_reduce_scatter(Half data) override;
  void do_all_gather(Half data) override;
  void do_send(ConstHalf data, std::int64_t to) override;
  void do_receive(Half data, std::int64_t from) override;

 private:
  Meeting& meeting_;
};

}  // namespace zeroplan::engine
