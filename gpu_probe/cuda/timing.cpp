// How long does it take? Front door: timed.
#include "gpu_probe/cuda/timing.hpp"

#include <algorithm>

#include "gpu_probe/cuda/kernels.hpp"

namespace zeroplan {
namespace {

class Gate {
 public:
  Gate() : memory_(sizeof(int)), flag_(static_cast<volatile int*>(memory_.get())) { *flag_ = 1; }
  // A kernel that waits for ever would hold the device: whatever happens, the gate opens.
  ~Gate() { *flag_ = 1; }

  void close(const CudaStream& stream) {
    *flag_ = 0;
    void* on_device = nullptr;
    check(cudaHostGetDevicePointer(&on_device, memory_.get(), 0), "cudaHostGetDevicePointer");
    kernels::hold(static_cast<const volatile int*>(on_device), stream.get());
  }
  void open() { *flag_ = 1; }

 private:
  PinnedMemory memory_;
  volatile int* flag_;
};

double sample(const CudaStream& stream,
              const std::function<void()>& work,
              int launches,
              bool behind_gate) {
  const CudaEvent begin;
  const CudaEvent end;
  Gate gate;
  if (behind_gate) gate.close(stream);
  begin.record(stream);
  for (int i = 0; i < launches; ++i) work();
  end.record(stream);
  gate.open();
  stream.synchronize();
  return seconds_between(begin, end) / launches;
}

}  // namespace

Samples timed(const CudaStream& stream, const std::function<void()>& work, Repetition r) {
  for (int i = 0; i < r.warm_ups; ++i) work();
  stream.synchronize();
  const double once = sample(stream, work, 1, r.behind_gate);
  const int launches = std::clamp(static_cast<int>(r.sample_seconds / once), 1, r.most_launches);
  Samples samples;
  for (int i = 0; i < r.samples; ++i)
    samples.push_back(sample(stream, work, launches, r.behind_gate));
  return samples;
}

}  // namespace zeroplan
