// How do processes stand in for ranks? Front door: SocketCommunicator.
#include "validator/communicator/socket_communicator.hpp"

#include "validator/communicator/combined.hpp"

namespace zeroplan::engine {
namespace {

template <class Value>
std::span<std::byte> bytes_of(View<Value> data) {
  return std::as_writable_bytes(std::span(data.data, static_cast<std::size_t>(data.elements())));
}

}  // namespace

// What rank `rank` combines.
template <class Value>
View<Value> SocketCommunicator::share(View<Value> data, std::int64_t rank) const {
  const std::int64_t first = data.elements() * rank / size();
  const std::int64_t last = data.elements() * (rank + 1) / size();
  return {data.data + first, last - first};
}

// Each rank gets every other's version of its share, and leaves their sum in its buffer.
template <class Value>
void SocketCommunicator::combine(View<Value> data, Reduction reduction, const char* name) {
  for (std::int64_t r = 0; r < size(); ++r) {
    if (r != rank()) mesh_.post(member(r), bytes_of(share(data, r)));
  }
  const View<Value> own = share(data, rank());
  std::vector<std::vector<Value>> others(static_cast<std::size_t>(size()));
  std::vector<void*> buffers;
  for (std::int64_t r = 0; r < size(); ++r) {
    std::vector<Value>& other = others[static_cast<std::size_t>(r)];
    if (r != rank()) {
      other.resize(static_cast<std::size_t>(own.elements()));
      mesh_.receive(member(r), std::as_writable_bytes(std::span(other)), name);
    }
    buffers.push_back(r == rank() ? own.data : other.data());
  }
  for (std::int64_t i = 0; i < own.elements(); ++i) {
    store(own.data[i], combined<Value>(buffers, i, reduction));
  }
}

// Each rank gives its share to all others.
template <class Value>
void SocketCommunicator::spread(View<Value> data, const char* name) {
  for (std::int64_t r = 0; r < size(); ++r) {
    if (r != rank()) mesh_.post(member(r), bytes_of(share(data, rank())));
  }
  for (std::int64_t r = 0; r < size(); ++r) {
    if (r != rank()) mesh_.receive(member(r), bytes_of(share(data, r)), name);
  }
}

void SocketCommunicator::do_all_reduce(Half data) {
  combine(data, Reduction::sum, "an all-reduce");
  spread(data, "an all-reduce");
}

void SocketCommunicator::do_all_reduce(Wide data, Reduction reduction) {
  combine(data, reduction, "an all-reduce");
  spread(data, "an all-reduce");
}

void SocketCommunicator::do_reduce_scatter(Half data) {
  combine(data, Reduction::sum, "a reduce-scatter");
}

void SocketCommunicator::do_all_gather(Half data) {
  spread(data, "an all-gather");
}

void SocketCommunicator::do_send(ConstHalf data, std::int64_t to) {
  mesh_.post(member(to),
             std::as_bytes(std::span(data.data, static_cast<std::size_t>(data.elements()))));
}

void SocketCommunicator::do_receive(Half data, std::int64_t from) {
  mesh_.receive(member(from), bytes_of(data), "a message of the pipeline");
}

}  // namespace zeroplan::engine
