#pragma once
// Ends the program when a GPU library no longer returns.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace zeroplan {

/// A call of a driver that hangs cannot be taken back, and no thread can be ended that is in one.
/// So where no call has returned for `patience`, the program ends at once with one line and the
/// exit code for its environment. `remedy` ends the line. Work of the host alone must be shorter
/// than that.
class Watchdog {
 public:
  Watchdog(std::chrono::milliseconds patience, std::string remedy);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// A call has returned.
  static void returned();

 private:
  void watch(std::chrono::milliseconds patience, const std::string& remedy);

  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace zeroplan
