#pragma once
// A long search shows that it lives, and ends when asked to.

#include <chrono>

#include "planner/sweep/search.hpp"

namespace zeroplan {

/// Shows rate, best so far and time left on standard error, where that is a terminal and the search
/// takes longer than a second. From construction on, SIGINT (Ctrl-C) or SIGTERM asks the search to
/// stop; one more after half a second ends the program.
class SweepProgress {
 public:
  SweepProgress();
  ~SweepProgress();
  SweepProgress(const SweepProgress&) = delete;
  SweepProgress& operator=(const SweepProgress&) = delete;

  /// For `search`: false once interrupted.
  bool operator()(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  bool terminal_;
  bool line_open_ = false;
};

}  // namespace zeroplan
