// How far is the search? Front door: SweepProgress.
#include "cli/sweep_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

namespace zeroplan {
namespace {

std::atomic<bool> interrupted = false;

void interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);  // the next one ends the program
}

}  // namespace

SweepProgress::SweepProgress() : terminal_(isatty(STDERR_FILENO) != 0) {
  interrupted = false;
  std::signal(SIGINT, interrupt);
}

SweepProgress::~SweepProgress() {
  std::signal(SIGINT, SIG_DFL);
  if (line_open_) fmt::print(stderr, "\r\x1b[K");
}

bool SweepProgress::operator()(const Progress& p) {
  using namespace std::chrono_literals;
  const Clock::time_point now = Clock::now();
  if (terminal_ && now - start_ > 1s && now - shown_ > 200ms) {
    const double elapsed = std::chrono::duration<double>(now - start_).count();
    const double left = p.share_done > 0 ? elapsed * (1 / p.share_done - 1) : 0;
    fmt::print(stderr, "\r\x1b[K{:.0f} %, {:.0f} layouts/s, about {:.0f} s left{}",
               100 * p.share_done, static_cast<double>(p.evaluated) / elapsed, left,
               p.best ? fmt::format(", best {:.3f} s a step", p.best->seconds) : "");
    std::fflush(stderr);
    shown_ = now;
    line_open_ = true;
  }
  return !interrupted;
}

}  // namespace zeroplan
