#pragma once
// An instant in the order of a stream.

#include "gpu_probe/cuda/check.hpp"
#include "validator/device/stopwatch.hpp"

namespace zeroplan::engine {

class CudaInstant final : public Instant {
 public:
  explicit CudaInstant(const CudaStream& stream) { event_.record(stream); }
  double since(const Instant& earlier) const override {
    check(cudaEventSynchronize(event_.get()), "cudaEventSynchronize");
    return seconds_between(static_cast<const CudaInstant&>(earlier).event_, event_);
  }
  const CudaEvent& event() const { return event_; }

 private:
  CudaEvent event_;
};

}  // namespace zeroplan::engine
