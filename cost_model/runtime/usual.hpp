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
/// Layers that are not Transformers' classes, and those that always are.
inline bool no_classes(const Problem&) {
  return false;
}
inline bool model_classes(const Problem&) {
  return true;
}

inline std::int64_t unpadded_vocabulary(const Problem&) {
  return 1;
}

inline AttentionKernel flash_attention(const Problem&) {
  return AttentionKernel::flash;
}

/// An allocator with PyTorch's own settings.
inline AllocatorConfig usual_allocator(const Problem&) {
  return {};
}

inline KernelHabits plain_kernels(const Problem&) {
  return {};
}
inline KernelHabits eager_kernels(const Problem& p) {
  const bool masks = p.runtime.attn_implementation == AttnImplementation::sdpa;
  return {.spells_out_layers = true, .skips_outside_window = !masks, .masks_windows = masks};
}

/// What a search may choose of layers in a runtime that treats all alike: nothing.
inline LayerChoices no_layer_choices(const GivenSettings&, Recompute) {
  return {};
}

/// The settings of a runtime whose exchange no search changes.
inline std::vector<ShardingSettings> no_knobs(const GivenSettings&, const Problem&) {
  return {{}};
}
inline void takes_nothing(const RuntimeSpec&, const Layout&, RuntimeSpec&) {}

inline std::vector<std::string> assumes_nothing(const Problem&) {
  return {};
}

/// What is said of partitioned activation checkpoints (ZeRO, section 6.1) that were asked for and
/// change nothing.
inline std::vector<std::string> notes_of_partition(const Problem& problem, bool asked) {
  if (!asked) return {};
  if (problem.layout.tp == 1) {
    return {
        "partition_activations changes nothing: it divides checkpoints over tensor "
        "parallelism, and tp is 1"};
  }
  if (problem.layout.recompute == Recompute::none) {
    return {
        "partition_activations changes nothing: it divides checkpoints, and nothing is "
        "recomputed"};
  }
  return {};
}

inline constexpr ZeroStage every_zero_stage[] = {ZeroStage::none, ZeroStage::optimizer,
                                                 ZeroStage::gradients, ZeroStage::parameters};
inline constexpr ZeroStage dividing_stages[] = {ZeroStage::optimizer, ZeroStage::gradients,
                                                ZeroStage::parameters};
inline constexpr ZeroStage optimizer_stage[] = {ZeroStage::optimizer};
inline constexpr Offload no_offloads[] = {Offload::none};

/// The choices of a runtime that counts or validates: data parallelism, at any stage of ZeRO.
inline constexpr Choices data_parallel_choices{
    .stages = dividing_stages, .every_stage = every_zero_stage, .offloads = no_offloads};

/// The bytes on the host in a runtime whose passes keep nothing there: none.
inline Bytes nothing_moved(const Problem&, LayerKind) {
  return {};
}
inline Bytes none_on_host(const Problem&, const Stage&, std::int64_t) {
  return {};
}

/// The band of programs that are held to what PyTorch's own code allocates: FSDP2's, by its rows.
/// What a GPU adds is the same.
inline constexpr MemoryBand traced_band{.reserved = 0.06, .outside = 0.5};

/// The band of a runtime that no row measures: assumed.
inline StepBand unmeasured_step_band(const Problem&) {
  return {0.5, false};
}

}  // namespace zeroplan
