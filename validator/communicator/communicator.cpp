// What is counted, before anything is sent? Front door: Communicator.
#include "validator/communicator/communicator.hpp"

namespace zeroplan::engine {
namespace {

template <class Value>
std::int64_t bytes(View<Value> data) {
  return data.elements() * static_cast<std::int64_t>(sizeof(Value));
}

}  // namespace

// A receiver waits too, and counts nothing.
template <class Work>
void Communicator::run(Collective collective, std::int64_t bytes, Work&& work, bool counts) {
  if (counts) ++traffic_[{collective, bytes}];
  if (watch_ == nullptr) return work();
  watch_->add_call({group_, collective, bytes}, counts, watch_->timed(work));
}

// The device waits while a call begins and while it is waited for.
template <class Start>
Pending Communicator::start(Collective collective, std::int64_t bytes, Start&& start) {
  ++traffic_[{collective, bytes}];
  if (watch_ == nullptr) return start();
  const CallKind kind{group_, collective, bytes};
  Pending begun;
  const Stopwatch::Interval beginning = watch_->timed([&] { begun = start(); });
  if (!begun.wait) {
    watch_->add_call(kind, true, beginning);
    return begun;
  }
  watch_->add_travelling(kind, beginning, begun.travelled);
  return {[watch = watch_, kind, begun] { watch->add_wait(kind, watch->timed(begun.wait)); }, {}};
}

void Communicator::all_reduce(Half data) {
  if (alone()) return;
  run(Collective::all_reduce, bytes(data), [&] { do_all_reduce(data); });
}

void Communicator::all_reduce(Wide data, Reduction reduction) {
  if (alone()) return;
  run(Collective::all_reduce, bytes(data), [&] { do_all_reduce(data, reduction); });
}

void Communicator::reduce_scatter(Half data) {
  if (alone()) return;
  run(Collective::reduce_scatter, bytes(data), [&] { do_reduce_scatter(data); });
}

void Communicator::all_gather(Half data) {
  if (alone()) return;
  run(Collective::all_gather, bytes(data), [&] { do_all_gather(data); });
}

Pending Communicator::start_reduce_scatter(Half data) {
  if (alone()) return {};
  return start(Collective::reduce_scatter, bytes(data),
               [&] { return do_start_reduce_scatter(data); });
}

Pending Communicator::start_all_gather(Half data) {
  if (alone()) return {};
  return start(Collective::all_gather, bytes(data), [&] { return do_start_all_gather(data); });
}

void Communicator::send(ConstHalf data, std::int64_t to) {
  run(Collective::send_recv, bytes(data), [&] { do_send(data, to); });
}

void Communicator::receive(Half data, std::int64_t from) {
  run(
      Collective::send_recv, bytes(data), [&] { do_receive(data, from); }, false);
}

}  // namespace zeroplan::engine
