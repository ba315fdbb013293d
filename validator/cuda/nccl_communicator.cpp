// How do processes with a GPU each communicate? Front door: NcclCommunicator.
#include "validator/cuda/nccl_communicator.hpp"

#include "validator/cuda/cuda_instant.hpp"

namespace zeroplan::engine {
namespace {

constexpr ncclDataType_t half_type = ncclBfloat16;

std::size_t size_of(std::int64_t elements) {
  return static_cast<std::size_t>(elements);
}

void after(const CudaStream& stream, const CudaEvent& event) {
  check(cudaStreamWaitEvent(stream.get(), event.get(), 0), "cudaStreamWaitEvent");
}

}  // namespace

void NcclCommunicator::connect(const ncclUniqueId& id, const Watch& watch) {
  device_.meter().book(&Closing::communicators,
                       [&] { all_ = std::make_unique<NcclHandle>(id, size(), rank(), watch); });
}

void NcclCommunicator::link(const ncclUniqueId& id,
                            std::int64_t from,
                            std::int64_t to,
                            const Watch& watch) {
  device_.meter().book(&Closing::communicators, [&] {
    Link& made = links_[{from, to}];
    made.handle = std::make_unique<NcclHandle>(id, 2, rank() == from ? 0 : 1, watch);
    const DeviceMemory message(sizeof(Bf16));
    const ncclComm_t nccl = made.handle->get();
    if (rank() == from) {
      made.handle->settle(ncclSend(message.get(), 1, half_type, 1, nccl, made.stream.get()),
                          "ncclSend");
    } else {
      made.handle->settle(ncclRecv(message.get(), 1, half_type, 0, nccl, made.stream.get()),
                          "ncclRecv");
    }
    made.handle->wait(made.stream, "a first message");
  });
}

void NcclCommunicator::finish() {
  for (auto& [ends, link] : links_) {
    link.handle->wait(link.stream, "a last message");
    link.handle->finish();
  }
  if (all_) all_->finish();
}

// Behind what the device has been told until now, and before what it is told after the wait.
template <class Call>
Pending NcclCommunicator::enqueue(const char* name, Call&& call) {
  const CudaInstant ready(device_.stream());
  after(stream_, ready.event());
  const auto began = std::make_shared<CudaInstant>(stream_);
  all_->settle(call(all_->get(), stream_.get()), name);
  const auto done = std::make_shared<CudaInstant>(stream_);
  return {[this, name, done] {
            all_->wait(done->event(), name);
            after(device_.stream(), done->event());
          },
          {began, done}};
}

// The first call of a kind and size may connect, load a kernel and allocate: that is NCCL's.
template <class Call>
Pending NcclCommunicator::begin(const char* name, std::int64_t elements, Call&& call) {
  if (!seen_.insert({name, elements}).second) return enqueue(name, call);
  device_.stream().synchronize();
  device_.meter().book(&Closing::communicators, [&] { enqueue(name, call)(); });
  return {};
}

void NcclCommunicator::do_all_reduce(Half data) {
  if (data.elements() % size() == 0) {
    do_reduce_scatter(data);
    return do_all_gather(data);
  }
  begin("ncclAllReduce", data.elements(), [&](ncclComm_t nccl, cudaStream_t stream) {
    return ncclAllReduce(data.data, data.data, size_of(data.elements()), half_type, ncclSum, nccl,
                         stream);
  })();
}

void NcclCommunicator::do_all_reduce(Wide data, Reduction reduction) {
  const ncclRedOp_t how = reduction == Reduction::sum ? ncclSum : ncclMax;
  const char* name =
      reduction == Reduction::sum ? "ncclAllReduce of sums" : "ncclAllReduce of maxima";
  begin(name, data.elements(), [&](ncclComm_t nccl, cudaStream_t stream) {
    return ncclAllReduce(data.data, data.data, size_of(data.elements()), ncclFloat32, how, nccl,
                         stream);
  })();
}

void NcclCommunicator::do_reduce_scatter(Half data) {
  do_start_reduce_scatter(data)();
}

void NcclCommunicator::do_all_gather(Half data) {
  do_start_all_gather(data)();
}

Pending NcclCommunicator::do_start_reduce_scatter(Half data) {
  const std::int64_t part = data.elements() / size();
  return begin("ncclReduceScatter", data.elements(), [&](ncclComm_t nccl, cudaStream_t stream) {
    return ncclReduceScatter(data.data, data.data + part * rank(), size_of(part), half_type,
                             ncclSum, nccl, stream);
  });
}

Pending NcclCommunicator::do_start_all_gather(Half data) {
  const std::int64_t part = data.elements() / size();
  return begin("ncclAllGather", data.elements(), [&](ncclComm_t nccl, cudaStream_t stream) {
    return ncclAllGather(data.data + part * rank(), data.data, size_of(part), half_type, nccl,
                         stream);
  });
}

// A copy travels: the sender's tensor may go at once.
void NcclCommunicator::do_send(ConstHalf data, std::int64_t to) {
  Link& l = link_of(rank(), to);
  const std::size_t bytes = size_of(data.elements()) * sizeof(Bf16);
  void* message = Meter::allocate_message(bytes, device_.stream());
  check(
      cudaMemcpyAsync(message, data.data, bytes, cudaMemcpyDeviceToDevice, device_.stream().get()),
      "cudaMemcpyAsync");
  l.copied.record(device_.stream());
  check(cudaStreamWaitEvent(l.stream.get(), l.copied.get(), 0), "cudaStreamWaitEvent");
  l.handle->settle(
      ncclSend(message, size_of(data.elements()), half_type, 1, l.handle->get(), l.stream.get()),
      "ncclSend");
  Meter::release_message(message, l.stream);
}

void NcclCommunicator::do_receive(Half data, std::int64_t from) {
  Link& l = link_of(from, rank());
  device_.stream().synchronize();  // nobody reads the buffer's last message any more
  l.handle->settle(
      ncclRecv(data.data, size_of(data.elements()), half_type, 0, l.handle->get(), l.stream.get()),
      "ncclRecv");
  l.handle->wait(l.stream, "a message of the pipeline");
}

}  // namespace zeroplan::engine
