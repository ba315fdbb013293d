// Who does which task? Front door: ThreadTeam::each.
#include "planner/sweep/thread_team.hpp"

#include <sched.h>

#include <algorithm>
#include <system_error>

namespace zeroplan {

std::size_t all_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&allowed)));
  }
  return std::max(1U, std::thread::hardware_concurrency());  // more cores than the set can hold
}

ThreadTeam::ThreadTeam(std::size_t size) : size_(std::max<std::size_t>(1, size)) {}

ThreadTeam::~ThreadTeam() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::each(std::size_t first, std::size_t last, const Work& work) {
  if (first >= last) return;
  const std::size_t helpers = start(std::min(size_ - 1, last - first - 1));
  std::unique_lock lock(mutex_);
  work_ = &work;
  next_ = first;
  last_ = last;
  seats_ = helpers;
  failure_ = nullptr;
  for (std::size_t i = 0; i < helpers; ++i) begun_.notify_one();
  do_tasks(0, lock);
  seats_ = 0;  // who has not woken up by now is not waited for
  ended_.wait(lock, [&] { return busy_ == 0; });
  work_ = nullptr;
  if (failure_) std::rethrow_exception(failure_);
}

// Threads there are, up to so many: the system may refuse some, and then the others do their tasks.
std::size_t ThreadTeam::start(std::size_t wanted) {
  try {
    while (threads_.size() < wanted) {
      threads_.emplace_back([this, member = threads_.size() + 1] { wait_for_tasks(member); });
    }
  } catch (const std::system_error&) {
  }
  return std::min(wanted, threads_.size());
}

void ThreadTeam::wait_for_tasks(std::size_t member) {
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [&] { return stop_ || seats_ > 0; });
    if (stop_) return;
    --seats_;
    ++busy_;
    do_tasks(member, lock);
    if (--busy_ == 0) ended_.notify_one();
  }
}

// Takes tasks until there are none, many at first and one by one at the end; `lock` is held
// between.
void ThreadTeam::do_tasks(std::size_t member, std::unique_lock<std::mutex>& lock) {
  const Work& work = *work_;
  while (next_ < last_) {
    std::size_t i = next_;
    next_ += std::max<std::size_t>(1, (last_ - next_) / (4 * size_));
    const std::size_t end = next_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      for (; i < end; ++i) work(member, i);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (!failure) continue;
    if (!failure_) failure_ = failure;
    next_ = last_;
  }
}

}  // namespace zeroplan
