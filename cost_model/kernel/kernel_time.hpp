#pragma once
// Seconds the GPU is busy, by kind of kernel.

namespace zeroplan {

struct KernelTime {
  double gemm = 0;
  double attention = 0;
  double memory_bound = 0;
  double gaps = 0;  // between kernels, and of kernels too small to be listed

  constexpr double total() const { return gemm + attention + memory_bound + gaps; }
  constexpr KernelTime& operator+=(const KernelTime& other) {
    gemm += other.gemm;
    attention += other.attention;
    memory_bound += other.memory_bound;
    gaps += other.gaps;
    return *this;
  }
  friend constexpr KernelTime operator+(KernelTime a, const KernelTime& b) { return a += b; }
  friend constexpr KernelTime operator*(double times, const KernelTime& t) {
    return {times * t.gemm, times * t.attention, times * t.memory_bound, times * t.gaps};
  }
};

}  // namespace zeroplan
