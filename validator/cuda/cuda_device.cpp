// Where do a GPU rank's tensors lie, and how do they get there? Front door: CudaDevice.
#include "validator/cuda/cuda_device.hpp"

#include "validator/cuda/cuda_instant.hpp"

namespace zeroplan::engine {
namespace {

std::size_t size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

}  // namespace

CudaDevice::CudaDevice(Meter& meter) : meter_(meter) {
  meter_.use();
  meter_.book(&Closing::context, [&] { stream_.emplace(); });
  products_.emplace(meter_);
}

Stopwatch::Point CudaDevice::now() {
  return std::make_shared<CudaInstant>(*stream_);
}

void* CudaDevice::allocate(std::int64_t bytes) {
  return meter_.allocate(bytes, *stream_);
}

void CudaDevice::release(void* memory) noexcept {
  meter_.release(memory, *stream_);
}

void CudaDevice::upload(void* to, const void* from, std::int64_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, size(bytes), cudaMemcpyHostToDevice, stream_->get()),
        "cudaMemcpyAsync");
  stream_->synchronize();
}

void CudaDevice::download(void* to, const void* from, std::int64_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, size(bytes), cudaMemcpyDeviceToHost, stream_->get()),
        "cudaMemcpyAsync");
  stream_->synchronize();
}

void CudaDevice::zero(void* memory, std::int64_t bytes) {
  check(cudaMemsetAsync(memory, 0, size(bytes), stream_->get()), "cudaMemsetAsync");
}

void CudaDevice::copy(Half to, ConstHalf from) {
  check(cudaMemcpyAsync(to.data, from.data, size(from.elements()) * sizeof(Bf16),
                        cudaMemcpyDeviceToDevice, stream_->get()),
        "cudaMemcpyAsync");
}

void CudaDevice::do_linear(ConstHalf x, ConstHalf w, Half y) {
  products_->run({x}, {w, true}, y, false, workspace_, *stream_);
}

void CudaDevice::do_linear_input_gradient(ConstHalf dy, ConstHalf w, Half dx) {
  products_->run({dy}, {w}, dx, false, workspace_, *stream_);
}

void CudaDevice::do_linear_weight_gradient(ConstHalf dy, ConstHalf x, Half dw) {
  products_->run({dy, true}, {x}, dw, true, workspace_, *stream_);
}

}  // namespace zeroplan::engine
