// How do threads on one GPU stand in for ranks? Front door: CudaLoopback.
#include "validator/cuda/cuda_loopback.hpp"

#include <stdexcept>

#include "validator/cuda/reductions.hpp"

namespace zeroplan::engine {
namespace {

// A rank among its peers' buffers. It leaves whatever happens, or the others would wait for ever.
class Visit {
 public:
  Visit(CudaDevice& device, Meeting& meeting, std::int64_t rank, void* data) : meeting_(meeting) {
    device.stream().synchronize();
    buffers_ = &meeting.post(rank, data);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit() { meeting_.leave(); }
  const std::vector<void*>& buffers() const { return *buffers_; }

 private:
  Meeting& meeting_;
  const std::vector<void*>* buffers_ = nullptr;
};

struct Range {
  std::int64_t first, last;
};

// What rank `rank` combines: nobody else touches it.
Range share(std::int64_t elements, std::int64_t rank, std::int64_t size) {
  return {elements * rank / size, elements * (rank + 1) / size};
}

}  // namespace

CudaLoopback::CudaLoopback(CudaDevice& device,
                           Meeting& meeting,
                           std::int64_t rank,
                           std::int64_t size)
    : Communicator(rank, size), device_(device), meeting_(meeting) {
  if (size > static_cast<std::int64_t>(most_buffers)) {
    throw std::length_error("more ranks than one GPU's loopback knows");
  }
}

void CudaLoopback::do_all_reduce(Half data) {
  const Visit visit(device_, meeting_, rank(), data.data);
  const auto [first, last] = share(data.elements(), rank(), size());
  combine_bf16(visit.buffers(), first, last, device_.stream());
  device_.stream().synchronize();
}

void CudaLoopback::do_all_reduce(Wide data, Reduction reduction) {
  const Visit visit(device_, meeting_, rank(), data.data);
  const auto [first, last] = share(data.elements(), rank(), size());
  combine_fp32(visit.buffers(), first, last, reduction, device_.stream());
  device_.stream().synchronize();
}

void CudaLoopback::do_reduce_scatter(Half data) {
  const Visit visit(device_, meeting_, rank(), data.data);
  const auto [first, last] = share(data.elements(), rank(), size());
  sum_into_bf16(data.data, visit.buffers(), first, last, device_.stream());
  device_.stream().synchronize();
}

void CudaLoopback::do_all_gather(Half data) {
  const Visit visit(device_, meeting_, rank(), data.data);
  for (std::int64_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    const auto [first, last] = share(data.elements(), r, size());
    const Half from{static_cast<Bf16*>(visit.buffers()[static_cast<std::size_t>(r)]),
                    data.elements()};
    const Half to{data.data, data.elements()};
    device_.copy(to.part(first, last - first), from.part(first, last - first));
  }
  device_.stream().synchronize();
}

// Messages pass through the host: the sender does not wait, and its buffer may go.
void CudaLoopback::do_send(ConstHalf data, std::int64_t to) {
  std::vector<Bf16> message(static_cast<std::size_t>(data.elements()));
  device_.download(message.data(), data.data,
                   data.elements() * static_cast<std::int64_t>(sizeof(Bf16)));
  meeting_.send(rank(), to, std::move(message));
}

void CudaLoopback::do_receive(Half data, std::int64_t from) {
  const std::vector<Bf16> message = meeting_.receive(from, rank());
  device_.upload(data.data, message.data(),
                 data.elements() * static_cast<std::int64_t>(sizeof(Bf16)));
}

}  // namespace zeroplan::engine
