// Who does which task? Front door: ThreadTeam::each.
#include "planner/sweep/thread_team.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>

namespace zeroplan {
namespace {

// The cores that this process may run on; empty where there are more than the set can hold.
std::optional<cpu_set_t> allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return std::nullopt;
  return allowed;
}

// Moves the calling thread `further` allowed cores on from `core`, and lets it go again. A thread
// begins on its maker's core, which two that are awake would share until the system looks: up to
// 150 ms, and a search takes no longer.
void begin_beside(int core, std::size_t further) {
  const std::optional<cpu_set_t> allowed = allowed_cores();
  if (!allowed || CPU_COUNT(&*allowed) < 2) return;
  while (further > 0) {
    core = (core + 1) % CPU_SETSIZE;
    if (CPU_ISSET(core, &*allowed)) --further;
  }
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(core, &own);
  if (sched_setaffinity(0, sizeof(own), &own) == 0) {
    sched_setaffinity(0, sizeof(*allowed), &*allowed);
  }
}

}  // namespace

std::size_t all_cores() {
  if (const std::optional<cpu_set_t> allowed = allowed_cores()) {
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&*allowed)));
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

ThreadTeam::ThreadTeam(std::size_t size) : size_(std::max<std::size_t>(1, size)), queues_(size_) {}

ThreadTeam::~ThreadTeam() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
    ++news_;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::each(std::size_t first, std::size_t last, const Work& work, const Home& home) {
  if (first >= last) return;
  const std::size_t helpers = start(std::min(size_ - 1, last - first - 1));
  std::unique_lock lock(mutex_);
  work_ = &work;
  for (std::size_t i = first; i < last; ++i) {
    queues_[home ? home(i) % size_ : (i - first) * size_ / (last - first)].push_back(i);
  }
  seats_ = helpers;
  failure_ = nullptr;
  ++news_;
  for (std::size_t i = 0; i < helpers; ++i) begun_.notify_one();
  do_tasks(0, lock);
  seats_ = 0;  // who has not woken up by now is not waited for
  wait(ended_, lock, [&] { return busy_ == 0; });
  work_ = nullptr;
  if (failure_) std::rethrow_exception(failure_);
}

// Threads there are, up to so many: the system may refuse some, and then the others do their tasks.
std::size_t ThreadTeam::start(std::size_t wanted) {
  try {
    while (threads_.size() < wanted) {
      threads_.emplace_back([this, member = threads_.size() + 1, core = sched_getcpu()] {
        begin_beside(core, member);
        wait_for_tasks(member);
      });
    }
  } catch (const std::system_error&) {
  }
  return std::min(wanted, threads_.size());
}

// Awake for a while, since tasks are often done sooner than a thread wakes up, then asleep.
template <class Holds>
void ThreadTeam::wait(std::condition_variable& told,
                      std::unique_lock<std::mutex>& lock,
                      Holds&& holds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds awake{200};
  const Clock::time_point until = Clock::now() + awake;
  while (!holds() && Clock::now() < until) {
    const std::uint64_t known = news_;
    lock.unlock();
    while (news_ == known && Clock::now() < until) std::this_thread::yield();
    lock.lock();
  }
  told.wait(lock, holds);
}

void ThreadTeam::wait_for_tasks(std::size_t member) {
  std::unique_lock lock(mutex_);
  while (true) {
    wait(begun_, lock, [&] { return stop_ || seats_ > 0; });
    if (stop_) return;
    --seats_;
    ++busy_;
    do_tasks(member, lock);
    if (--busy_ > 0) continue;
    ++news_;
    ended_.notify_one();
  }
}

// The first of its own, many while there are many; else the last of who has most.
bool ThreadTeam::take_tasks(std::size_t member, std::vector<std::size_t>& taken) {
  constexpr std::size_t part = 4;
  taken.clear();
  std::deque<std::size_t>& own = queues_[member];
  const auto longest = std::ranges::max_element(queues_, {}, &std::deque<std::size_t>::size);
  std::deque<std::size_t>& queue = own.empty() ? *longest : own;
  const auto count = static_cast<std::ptrdiff_t>((queue.size() + part - 1) / part);
  const auto begin = own.empty() ? queue.end() - count : queue.begin();
  taken.assign(begin, begin + count);
  queue.erase(begin, begin + count);
  return !taken.empty();
}

// Takes tasks until there are none; `lock` is held between.
void ThreadTeam::do_tasks(std::size_t member, std::unique_lock<std::mutex>& lock) {
  const Work& work = *work_;
  std::vector<std::size_t> taken;
  while (true) {
    std::exception_ptr failure;
    try {
      if (!take_tasks(member, taken)) return;  // taking them, too, may find no memory
      lock.unlock();
      for (const std::size_t i : taken) work(member, i);
    } catch (...) {
      failure = std::current_exception();
    }
    if (!lock) lock.lock();
    if (!failure) continue;
    if (!failure_) failure_ = failure;
    for (std::deque<std::size_t>& queue : queues_) queue.clear();
  }
}

}  // namespace zeroplan
