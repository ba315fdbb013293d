#pragma once
// How long a recorded kernel takes, by the laws of products, attention and moved bytes.

#include "cost_model/kernel/attention.hpp"
#include "cost_model/kernel/gemm.hpp"
#include "cost_model/kernel/kernel_time.hpp"
#include "cost_model/program/block.hpp"
#include "cost_model/question/cluster.hpp"

namespace zeroplan {

/// What the laws of products and attention take the shapes of a recorded kernel for.
Gemm gemm_of(const ProductShape& shape);
AttentionShape attention_of(const ScoreShape& shape);

/// Sustained seconds of a recorded kernel (kernel/gemm.hpp, attention.hpp, memory_bound.hpp).
KernelTime operator_time(const Operator& op, const GpuSpec& gpu);

/// Sustained seconds of all recorded kernels among these events of a block.
KernelTime operators_time(const Block& block, const std::vector<Event>& events, const GpuSpec& gpu);

}  // namespace zeroplan
