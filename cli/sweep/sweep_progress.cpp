// How far is the search? Front door: SweepProgress.
#include "cli/sweep/sweep_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>

namespace zeroplan {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> interrupted = false;
std::atomic<Clock::rep> interrupted_at = 0;

// One wish to stop may arrive twice at once: timeout(1) signals the program and then its group.
void interrupt(int signal) {
  using namespace std::chrono_literals;
  const Clock::duration now = Clock::now().time_since_epoch();
  if (!interrupted) {
    interrupted_at = now.count();
    interrupted = true;
  } else if (now - Clock::duration(interrupted_at.load()) > 500ms) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

SweepProgress::SweepProgress() : terminal_(isatty(STDERR_FILENO) != 0) {
  interrupted = false;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, interrupt);
}

SweepProgress::~SweepProgress() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  if (line_open_) fmt::print(stderr, "\r\x1b[K");
}

bool SweepProgress::operator()(const Progress& p) {
  using namespace std::chrono_literals;
  const Clock::time_point now = Clock::now();
  if (terminal_ && now - start_ > 1s && now - shown_ > 200ms) {
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    // A line of 60 letters at most: one that is broken cannot be written over.
    const std::string left =
        p.share_done > 0 ? fmt::format(", {:.0f} s left", elapsed * (1 / p.share_done - 1)) : "";
    fmt::print(stderr, "\r\x1b[K{:.0f} %, {:.0f} layouts/s{}{}", 100 * p.share_done,
               static_cast<double>(p.evaluated) / elapsed, left,
               p.best ? fmt::format(", best {:.3f} s a step", p.best->seconds) : "");
    std::fflush(stderr);
    shown_ = now;
    line_open_ = true;
  }
  return !interrupted;
}

}  // namespace zeroplan
