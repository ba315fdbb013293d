#pragma once
// How long a recorded kernel takes, by the laws of products, attention and moved bytes.

#include "cost_model/kernel/attention.hpp"
#include "cost_model/kernel/gemm.hpp"
#include "cost_model/kernel/kernel_time.hpp"
#include "cost_model/program/block.hpp"
#include "cost_model/question/cluster.hpp"

namespace zeroplan {

/// What the laws take its shapes for.
Gemm gemm_of(const ProductShape& shape);
AttentionShape attention_of(const ScoreShape& shape);

/// Sustained seconds of it (kernel/gemm.hpp, attention.hpp, memory_bound.hpp).
KernelTime operator_time(const Operator& op, const GpuSpec& gpu);

/// Of all recorded kernels among the events of a block.
KernelTime operators_time(const Block& block, const std::vector<Event>& events, const GpuSpec& gpu);

}  // namespace zeroplan
