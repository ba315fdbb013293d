#pragma once
// The few kernels that a probe brings itself.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace zeroplan::kernels {

// Each starts one kernel on `stream`. Counts are of 16-byte words.

/// Waits until the host sets `*open` (mapped memory), so that what is enqueued behind it starts
/// together, without the host's pauses between launches.
void hold(const volatile int* open, cudaStream_t stream);

void copy(void* to, const void* from, std::size_t words, cudaStream_t stream);
void read(const void* from, std::size_t words, void* sink, cudaStream_t stream);
void write(void* to, std::size_t words, cudaStream_t stream);

constexpr std::size_t bf16_bytes = 2;

/// bf16 values between -1 and 1 that no pattern repeats: power, and with it the clock, depends on
/// the data.
void fill_random(void* to, std::size_t elements, std::uint64_t seed, cudaStream_t stream);

/// Loads every kernel of this file, which CUDA puts off until the first launch.
void load_all();

}  // namespace zeroplan::kernels
