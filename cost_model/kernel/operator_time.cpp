// How long does a recorded kernel take? Front door: operator_time.
#include "cost_model/kernel/operator_time.hpp"

#include "cost_model/kernel/memory_bound.hpp"

namespace zeroplan {
namespace {

struct Timing {
  const Operator& op;
  const GpuSpec& gpu;

  KernelTime operator()(Bytes moved) const {
    return {.memory_bound = memory_bound_seconds(moved, Access::streaming, gpu)};
  }

  KernelTime operator()(const ProductShape& s) const {
    return {.gemm = gemm_seconds(gemm_of(s), gpu, op.precision, Pace::sustained)};
  }

  KernelTime operator()(const ScoreShape& s) const {
    return {.attention = flash_seconds(
                attention_of(s), s.backward ? Direction::backward : Direction::forward, gpu,
                op.precision, s.newest ? FlashKernel::newest : FlashKernel::flash2)};
  }
};

}  // namespace

Gemm gemm_of(const ProductShape& s) {
  return {.product = s.columns_of_inputs ? Product::weight_gradient : Product::forward,
          .m = s.m,
          .n = s.n,
          .k = s.k,
          .groups = s.groups,
          .output_bytes = s.output_bytes};
}

AttentionShape attention_of(const ScoreShape& s) {
  return {.batch = s.batch,
          .queries = s.queries,
          .keys = s.keys,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .qk_width = s.qk_width,
          .v_width = s.v_width,
          .causal = s.causal};
}

KernelTime operator_time(const Operator& op, const GpuSpec& gpu) {
  return std::visit(Timing{op, gpu}, op.work);
}

KernelTime operators_time(const Block& block,
                          const std::vector<Event>& events,
                          const GpuSpec& gpu) {
  KernelTime sum;
  for (const Event& event : events) {
    if (event.operates()) sum += operator_time(block.operator_of(event), gpu);
  }
  return sum;
}

}  // namespace zeroplan
