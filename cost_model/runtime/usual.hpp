#pragma once
// What runtimes answer that have nothing of their own to say.

#include "cost_model/allocator/caching_allocator.hpp"
#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/pipeline/messages.hpp"
#include "cost_model/pipeline/optimizer_time.hpp"
#include "cost_model/pipeline/overlap.hpp"
#include "cost_model/pipeline/sharding_copies.hpp"
#include "cost_model/program/peak_bytes.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/schedule/pipeline.hpp"
#include "cost_model/states/buffers.hpp"
#include "cost_model/states/host_tensors.hpp"
#include "cost_model/states/overheads.hpp"

namespace zeroplan {

/// Layers that are not Megatron-LM's.
inline bool own_layers(const Problem&) {
  return false;
}

inline std::int64_t unpadded_vocabulary(const Problem&) {
  return 1;
}

/// PyTorch's own settings.
inline AllocatorConfig usual_allocator(const Problem&) {
  return {};
}

inline KernelHabits plain_kernels(const Problem&) {
  return {};
}
inline KernelHabits eager_kernels(const Problem&) {
  return {.eager = true};
}

/// Of a runtime that no row measures: assumed.
inline double unmeasured_step_band(const Problem&) {
  return 0.5;
}

}  // namespace zeroplan
