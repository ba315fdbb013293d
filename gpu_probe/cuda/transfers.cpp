// How fast do bytes move on a GPU, to the host and to other GPUs? Front doors: measure_transfers,
// measure_peers.
#include "gpu_probe/cuda/kernels.hpp"
#include "gpu_probe/cuda/parts.hpp"
#include "gpu_probe/cuda/timing.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t word = 16;

// Copies from the host and to it at once: the second stream forks from the first and joins it
// again.
class BothWays {
 public:
  BothWays(const CudaStream& stream, std::size_t bytes) : stream_(stream), bytes_(bytes) {}

  void run() {
    fork_.record(stream_);
    check(cudaStreamWaitEvent(other_.get(), fork_.get(), 0), "cudaStreamWaitEvent");
    check(cudaMemcpyAsync(device_in_.get(), host_in_.get(), bytes_, cudaMemcpyHostToDevice,
                          stream_.get()),
          "cudaMemcpyAsync");
    check(cudaMemcpyAsync(host_out_.get(), device_out_.get(), bytes_, cudaMemcpyDeviceToHost,
                          other_.get()),
          "cudaMemcpyAsync");
    join_.record(other_);
    check(cudaStreamWaitEvent(stream_.get(), join_.get(), 0), "cudaStreamWaitEvent");
  }
  void to_device() {
    check(cudaMemcpyAsync(device_in_.get(), host_in_.get(), bytes_, cudaMemcpyHostToDevice,
                          stream_.get()),
          "cudaMemcpyAsync");
  }
  void to_host() {
    check(cudaMemcpyAsync(host_out_.get(), device_out_.get(), bytes_, cudaMemcpyDeviceToHost,
                          stream_.get()),
          "cudaMemcpyAsync");
  }

 private:
  const CudaStream& stream_;
  std::size_t bytes_;
  CudaStream other_;
  CudaEvent fork_, join_;
  DeviceMemory device_in_{bytes_}, device_out_{bytes_};
  PinnedMemory host_in_{bytes_}, host_out_{bytes_};
};

// A copy between two GPUs. Works without a direct path too: the driver then goes through the host.
class PeerCopy {
 public:
  PeerCopy(int from, int to, std::size_t bytes) : from_(from), to_(to), bytes_(bytes) {
    int possible = 0;
    check(cudaDeviceCanAccessPeer(&possible, from, to), "cudaDeviceCanAccessPeer");
    direct_ = possible != 0;
    check(cudaSetDevice(to), "cudaSetDevice");
    target_ = DeviceMemory(bytes);
    check(cudaSetDevice(from), "cudaSetDevice");
    source_ = DeviceMemory(bytes);
    if (direct_) {
      const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
      if (status != cudaErrorPeerAccessAlreadyEnabled) check(status, "cudaDeviceEnablePeerAccess");
      cudaGetLastError();
    }
  }
  bool is_direct() const { return direct_; }
  void run(const CudaStream& stream) {
    check(cudaMemcpyPeerAsync(target_.get(), to_, source_.get(), from_, bytes_, stream.get()),
          "cudaMemcpyPeerAsync");
  }

 private:
  int from_, to_;
  std::size_t bytes_;
  bool direct_ = false;
  DeviceMemory target_, source_;
};

}  // namespace

std::vector<TransferSamples> measure_transfers(Bytes bytes) {
  check(cudaSetDevice(0), "cudaSetDevice");
  const auto size = static_cast<std::size_t>(bytes.count()) / word * word;
  const std::size_t words = size / word;
  const CudaStream stream;
  std::vector<TransferSamples> all;
  const auto add = [&](Transfer transfer, std::int64_t buffers, const std::function<void()>& work) {
    all.push_back({transfer, buffers * Bytes{size}, timed(stream, work)});
  };
  {
    const DeviceMemory a(size);
    const DeviceMemory b(size);
    kernels::write(a.get(), words, stream.get());
    add(Transfer::copy, 2, [&] { kernels::copy(b.get(), a.get(), words, stream.get()); });
    add(Transfer::read, 1, [&] { kernels::read(a.get(), words, b.get(), stream.get()); });
    add(Transfer::write, 1, [&] { kernels::write(b.get(), words, stream.get()); });
  }
  BothWays host(stream, size);
  add(Transfer::to_device, 1, [&] { host.to_device(); });
  add(Transfer::to_host, 1, [&] { host.to_host(); });
  add(Transfer::both_ways, 2, [&] { host.run(); });
  return all;
}

std::vector<PeerSamples> measure_peers(int devices, Bytes bytes) {
  std::vector<PeerSamples> all;
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from == to) continue;
      PeerCopy copy(from, to, static_cast<std::size_t>(bytes.count()));
      const CudaStream stream;  // of `from`, which is current now
      all.push_back(
          {.from = from,
           .to = to,
           .direct = copy.is_direct(),
           .moved = bytes,
           // Without a path the driver goes through the host, and may wait for it.
           .seconds = timed(stream, [&] { copy.run(stream); }, {.behind_gate = copy.is_direct()})});
    }
  }
  return all;
}

}  // namespace zeroplan
