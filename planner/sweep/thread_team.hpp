#pragma once
// Threads that share out numbered tasks. The standard library alone, so that a static binary can
// have it: Debian's oneTBB is a shared library.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace zeroplan {

/// Cores that this process may run on; at least one.
std::size_t all_cores();

/// The caller and up to `size` - 1 threads, started with the first tasks that need them.
class ThreadTeam {
 public:
  explicit ThreadTeam(std::size_t size);
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();

  std::size_t size() const { return size_; }

  /// Calls work(member, i) once for each i from `first` to before `last`; members are numbered
  /// below size(), the caller being 0, and a member does one task at a time. Rethrows the first
  /// failure; tasks that had not begun are then left out. To be called by one thread at a time,
  /// and not from within a task. Tasks with the same `home` go to the same member, which knows what
  /// they share, while it has others to do; without one, neighbours do.
  using Work = std::function<void(std::size_t member, std::size_t i)>;
  using Home = std::function<std::size_t(std::size_t i)>;
  void each(std::size_t first, std::size_t last, const Work& work, const Home& home = {});

 private:
  std::size_t start(std::size_t wanted);
  template <class Holds>
  void wait(std::condition_variable& told, std::unique_lock<std::mutex>& lock, Holds&& holds);
  void wait_for_tasks(std::size_t member);
  void do_tasks(std::size_t member, std::unique_lock<std::mutex>& lock);
  bool take_tasks(std::size_t member, std::vector<std::size_t>& taken);

  const std::size_t size_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable begun_, ended_;
  std::atomic<std::uint64_t> news_ = 0;  // how often one of them was told: read by who waits awake
  const Work* work_ = nullptr;
  std::vector<std::deque<std::size_t>> queues_;  // of each member, tasks that nobody has begun
  std::size_t seats_ = 0;                        // threads that may still join
  std::size_t busy_ = 0;                         // threads that did
  std::exception_ptr failure_;
  bool stop_ = false;
};

}  // namespace zeroplan
