#pragma once
// Matrix products by cuBLASLt, in a workspace that the caller owns.

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "gpu_probe/cuda/check.hpp"
#include "validator/cuda/meter.hpp"
#include "validator/device/device.hpp"

namespace zeroplan::engine {

/// A row-major operand, transposed or not.
struct Factor {
  ConstHalf matrix;
  bool turned = false;
};

class Products {
 public:
  explicit Products(Meter& meter);
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;
  ~Products();

  /// result = left right, or result += left right: bf16, sums in fp32, rounded once. The same
  /// shapes at the same alignments are always multiplied by the same kernel: cuBLASLt's, or where
  /// it has none our own. Throws EnvironmentError.
  void run(const Factor& left,
           const Factor& right,
           Half result,
           bool accumulate,
           Wide workspace,
           const CudaStream& stream);

 private:
  struct Plan;  // one kernel for one kind of product
  using Key = std::tuple<std::int64_t,
                         std::int64_t,
                         std::int64_t,
                         bool,
                         bool,
                         bool,
                         unsigned,
                         unsigned,
                         unsigned>;
  std::unique_ptr<Plan> planned(const Factor& left,
                                const Factor& right,
                                Half result,
                                Wide workspace);
  bool choose(Plan& plan, const Factor& left, const Factor& right, Half result, Wide workspace);

  Meter& meter_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace zeroplan::engine
