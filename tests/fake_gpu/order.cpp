// Do streams wait for each other where they must? Front door: touches. Vector clocks (Fidge 1988).
#include "tests/fake_gpu/order.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <mutex>

#include "tests/fake_gpu/fault.hpp"

namespace zeroplan::fake {
namespace {

using Clock = std::map<void*, std::uint64_t>;  // of each stream, how much of it has passed

struct Access {
  void* stream;
  std::uintptr_t begin, end;
  bool writes;
  const char* what;
  std::uint64_t tick = 0;
};

std::mutex mutex;
std::map<void*, Clock> clocks;  // of streams and events
Clock host;
std::list<Access> accesses;

bool watched() {
  static const bool on = setting("FAKE_GPU_ORDER", 0) != 0;
  return on;
}

void join(Clock& to, const Clock& from) {
  for (const auto& [stream, tick] : from) to[stream] = std::max(to[stream], tick);
}

// The next thing that a stream does comes after what the host had waited for.
std::uint64_t advance(void* stream) {
  Clock& clock = clocks[stream];
  join(clock, host);
  return ++clock[stream];
}

void check(const Access& next) {
  for (const Access& before : accesses) {
    const bool apart = before.end <= next.begin || next.end <= before.begin;
    if (apart || before.stream == next.stream || (!before.writes && !next.writes)) continue;
    if (clocks[next.stream][before.stream] >= before.tick) continue;
    std::fprintf(stderr, "fake GPU: %s does not wait for %s on another stream\n", next.what,
                 before.what);
    std::_Exit(99);
  }
}

Access made(void* stream, const void* begin, std::size_t bytes, bool writes, const char* what) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  return {stream, first, first + bytes, writes, what};
}

}  // namespace

void touches(void* stream, const void* begin, std::size_t bytes, bool writes, const char* what) {
  if (!watched() || bytes == 0) return;
  const std::lock_guard lock(mutex);
  Access next = made(stream, begin, bytes, writes, what);
  next.tick = advance(stream);
  check(next);
  std::erase_if(accesses, [&](const Access& a) {
    return a.stream == next.stream && a.begin == next.begin && a.end == next.end &&
           a.writes == next.writes;
  });
  accesses.push_back(next);
}

void frees(void* stream, const void* begin, std::size_t bytes) {
  if (!watched()) return;
  const std::lock_guard lock(mutex);
  const Access next = made(stream, begin, bytes, true, "giving back memory");
  advance(stream);
  check(next);
  std::erase_if(accesses,
                [&](const Access& a) { return a.begin < next.end && next.begin < a.end; });
}

void records(void* event, void* stream) {
  if (!watched()) return;
  const std::lock_guard lock(mutex);
  advance(stream);
  clocks[event] = clocks[stream];
}

void waits(void* stream, void* event) {
  if (!watched() || setting("FAKE_GPU_DROPS_WAITS", 0) != 0) return;
  const std::lock_guard lock(mutex);
  advance(stream);
  join(clocks[stream], clocks[event]);
}

void host_waits(void* stream_or_event) {
  if (!watched()) return;
  const std::lock_guard lock(mutex);
  if (stream_or_event != nullptr) return join(host, clocks[stream_or_event]);
  for (const auto& [stream, clock] : clocks) join(host, clock);
}

void begins(void* stream_or_event) {
  if (!watched()) return;
  const std::lock_guard lock(mutex);
  clocks.erase(stream_or_event);
  std::erase_if(accesses, [&](const Access& a) { return a.stream == stream_or_event; });
}

}  // namespace zeroplan::fake
