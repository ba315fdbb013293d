// What is counted, before anything is sent? Front door: Communicator.
#include "validator/communicator/communicator.hpp"

namespace zeroplan::engine {
namespace {

template <class Value>
std::int64_t bytes(View<Value> data) {
  return data.elements() * static_cast<std::int64_t>(sizeof(Value));
}

}  // namespace

void Communicator::all_reduce(Half data) {
  if (alone()) return;
  count(Collective::all_reduce, bytes(data));
  do_all_reduce(data);
}

void Communicator::all_reduce(Wide data, Reduction reduction) {
  if (alone()) return;
  count(Collective::all_reduce, bytes(data));
  do_all_reduce(data, reduction);
}

void Communicator::reduce_scatter(Half data) {
  if (alone()) return;
  count(Collective::reduce_scatter, bytes(data));
  do_reduce_scatter(data);
}

void Communicator::all_gather(Half data) {
  if (alone()) return;
  count(Collective::all_gather, bytes(data));
  do_all_gather(data);
}

Pending Communicator::start_reduce_scatter(Half data) {
  if (alone()) return {};
  count(Collective::reduce_scatter, bytes(data));
  return do_start_reduce_scatter(data);
}

Pending Communicator::start_all_gather(Half data) {
  if (alone()) return {};
  count(Collective::all_gather, bytes(data));
  return do_start_all_gather(data);
}

void Communicator::send(ConstHalf data, std::int64_t to) {
  count(Collective::send_recv, bytes(data));
  do_send(data, to);
}

void Communicator::receive(Half data, std::int64_t from) {
  do_receive(data, from);
}

}  // namespace zeroplan::engine
