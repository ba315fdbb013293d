#pragma once
// How long something takes this thread, however busy the machine is.

#include <ctime>

namespace zeroplan::tests {

/// Seconds that the processor spent on `what()`.
template <class What>
double cpu_seconds(const What& what) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double before = now();
  what();
  return now() - before;
}

}  // namespace zeroplan::tests
