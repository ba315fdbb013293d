// Where do a host rank's tensors lie? Front door: HostDevice::allocate.
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "cost_model/question/units.hpp"
#include "validator/host/host_device.hpp"

namespace zeroplan::engine {

void* HostDevice::allocate(std::int64_t bytes) {
  constexpr std::int64_t alignment = 512;
  void* memory = std::aligned_alloc(static_cast<std::size_t>(alignment),
                                    static_cast<std::size_t>(round_up(bytes, alignment)));
  if (memory == nullptr) {
    throw std::runtime_error("the host has no room for " + std::to_string(bytes) + " bytes");
  }
  return memory;
}

void HostDevice::release(void* memory) noexcept {
  std::free(memory);
}

void HostDevice::upload(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void HostDevice::download(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void HostDevice::zero(void* memory, std::int64_t bytes) {
  std::memset(memory, 0, static_cast<std::size_t>(bytes));
}

float* Scratch::take(std::int64_t elements) {
  if (elements > rest_.rows) {
    throw std::length_error("a sequence this long needs more workspace than the engine has");
  }
  float* part = rest_.data;
  rest_ = {rest_.data + elements, rest_.rows - elements};
  return part;
}

}  // namespace zeroplan::engine
