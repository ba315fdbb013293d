// How do threads stand in for ranks? Front door: Loopback.
#include "validator/communicator/loopback.hpp"

#include <algorithm>

#include "validator/communicator/combined.hpp"

namespace zeroplan::engine {

template <class Done>
void Alarm::wait(std::unique_lock<std::mutex>& lock, const char* what, Done&& done) {
  changed.wait_for(lock, patience_, [&] { return message_.has_value() || done(); });
  if (done()) return;
  if (!message_) {
    message_ = std::string("no answer from a peer within ") +
               std::to_string(std::chrono::duration<double>(patience_).count()) + " s in " + what;
    changed.notify_all();
  }
  throw PeerLost(*message_);
}

void Alarm::raise(const std::string& message) {
  const std::lock_guard lock(mutex);
  if (!message_) message_ = message;
  changed.notify_all();
}

const std::vector<void*>& Meeting::post(std::int64_t rank, void* data) {
  std::unique_lock lock(alarm_.mutex);
  posted_[static_cast<std::size_t>(rank)] = data;
  const std::int64_t own = round_;
  if (++arrived_ == posted_.size()) {
    arrived_ = 0;
    working_ = posted_.size();
    ++round_;
    alarm_.changed.notify_all();
  }
  try {
    alarm_.wait(lock, "a collective", [&] { return round_ != own; });
  } catch (const PeerLost&) {
    --arrived_;  // nobody may read a buffer that is about to go
    throw;
  }
  return posted_;
}

void Meeting::leave() {
  std::unique_lock lock(alarm_.mutex);
  if (--working_ == 0) alarm_.changed.notify_all();
  alarm_.changed.wait(lock, [&] { return working_ == 0; });
}

void Meeting::send(std::int64_t from, std::int64_t to, std::vector<Bf16> message) {
  const std::lock_guard lock(alarm_.mutex);
  mail_[{from, to}].push_back(std::move(message));
  alarm_.changed.notify_all();
}

std::vector<Bf16> Meeting::receive(std::int64_t from, std::int64_t to) {
  std::unique_lock lock(alarm_.mutex);
  std::deque<std::vector<Bf16>>& box = mail_[{from, to}];
  alarm_.wait(lock, "a message", [&] { return !box.empty(); });
  std::vector<Bf16> message = std::move(box.front());
  box.pop_front();
  return message;
}

namespace {

// Each rank combines its part of the buffers and writes it to all of them: nobody else touches it.
template <class Value>
void reduce_to_all(
    Meeting& meeting, std::int64_t rank, std::int64_t size, View<Value> data, Reduction reduction) {
  const std::vector<void*>& buffers = meeting.post(rank, data.data);
  const std::int64_t last = data.elements() * (rank + 1) / size;
  for (std::int64_t i = data.elements() * rank / size; i < last; ++i) {
    const float value = combined<Value>(buffers, i, reduction);
    for (void* buffer : buffers) store(static_cast<Value*>(buffer)[i], value);
  }
  meeting.leave();
}

}  // namespace

void Loopback::do_all_reduce(Half data) {
  reduce_to_all(meeting_, rank(), size(), data, Reduction::sum);
}

void Loopback::do_all_reduce(Wide data, Reduction reduction) {
  reduce_to_all(meeting_, rank(), size(), data, reduction);
}

void Loopback::do_reduce_scatter(Half data) {
  const std::vector<void*>& buffers = meeting_.post(rank(), data.data);
  const std::int64_t part = data.elements() / size();
  for (std::int64_t i = part * rank(); i < part * (rank() + 1); ++i) {
    data.data[i] = narrow(combined<Bf16>(buffers, i, Reduction::sum));
  }
  meeting_.leave();
}

void Loopback::do_all_gather(Half data) {
  const std::vector<void*>& buffers = meeting_.post(rank(), data.data);
  const std::int64_t part = data.elements() / size();
  for (std::int64_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    const Bf16* from = static_cast<const Bf16*>(buffers[static_cast<std::size_t>(r)]);
    std::copy(from + r * part, from + (r + 1) * part, data.data + r * part);
  }
  meeting_.leave();
}

void Loopback::do_send(ConstHalf data, std::int64_t to) {
  meeting_.send(rank(), to, std::vector<Bf16>(data.data, data.data + data.elements()));
}

void Loopback::do_receive(Half data, std::int64_t from) {
  const std::vector<Bf16> message = meeting_.receive(from, rank());
  std::copy(message.begin(), message.end(), data.data);
}

}  // namespace zeroplan::engine
