#pragma once
// How long a matrix product takes.

#include <cstdint>

#include "cost_model/program/kernel.hpp"
#include "cost_model/question/cluster.hpp"
#include "cost_model/question/training.hpp"
#include "cost_model/rank/weights.hpp"

namespace zeroplan {

/// Which efficiency: a kernel timed alone, or one among others in training.
enum class Pace { burst, sustained };

/// (m x k) times (k x n), `groups` times with as many weights (1: an ordinary GEMM).
struct Gemm {
  Module module{};  // the linear it belongs to
  Product product = Product::forward;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t groups = 1;
  // Bytes moved for an element of the result; 8 where an fp32 sum is read and written back.
  std::int64_t output_bytes = 2;
  double rate = 1;                  // of its kernel, beside the usual one of its format
  Split split = Split::replicated;  // of its weight; experts' are on a grid of their own
  friend bool operator==(const Gemm&, const Gemm&) = default;
};

/// Multiplications and additions: 2 m n k in each group.
double flops(const Gemm& gemm);

/// FLOP/s of the unit that multiplies this format; 0 where the GPU has none. fp32 stays off the
/// TF32 units, which is PyTorch's default (torch.backends.cuda.matmul.allow_tf32).
double peak_flops(const GpuSpec& gpu, Precision precision);

/// Seconds of one GEMM kernel, by the law beside kernels::GemmSpeed: an efficiency, a start, and
/// k0, since a short k leaves the matrix units waiting. A grouped GEMM reads each weight for few
/// rows and hides only part of that. Infinite where the GPU has no such unit.
double gemm_seconds(const Gemm& gemm, const GpuSpec& gpu, Precision precision, Pace pace);

}  // namespace zeroplan
