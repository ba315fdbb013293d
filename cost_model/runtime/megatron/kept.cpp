// What do a rank's modules hold on to after their last pass? Front door: megatron_kept_inputs.
#include <algorithm>

#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/megatron/stage.hpp"

namespace zeroplan {
namespace {

// Checkpoints among these layers that run experts. A dispatcher keeps its probabilities, and with
// them the graph down to the checkpoint's input (Megatron-LM @d98e8a64dd
// core/transformer/moe/token_dispatcher.py, core/tensor_parallel/random.py CheckpointFunction).
std::int64_t expert_checkpoints(const Problem& p, const LayerRange& layers) {
  if (!p.model.moe) return 0;
  const bool full = p.layout.recompute == Recompute::full;
  if (!full && !drops(p, RecomputeModule::moe)) return 0;
  const std::int64_t group = megatron_layers_of_block(p);
  const RepeatedLayers repeated = full ? repeated_layers(p) : RepeatedLayers{};
  std::int64_t count = 0;
  std::int64_t counted = -1;  // the last group that was
  for (std::int64_t i = layers.first; i < layers.last; ++i) {
    const std::int64_t place = i - layers.first;
    const bool moe = has_experts(kind_of(p.model, i));
    if (!moe || !repeated.has(place) || place / group == counted) continue;
    counted = place / group;
    ++count;
  }
  return count;
}

// Whether the first checkpoint of the chunk reads what the chunk has received.
bool reads_received(const Problem& p, const LayerRange& layers) {
  if (p.layout.recompute != Recompute::full || layers.first == layers.last) return false;
  const std::int64_t last = std::min(layers.last, layers.first + megatron_layers_of_block(p));
  return expert_checkpoints(p, {layers.first, last}) > 0;
}

}  // namespace

Bytes megatron_kept_inputs(const Problem& problem, const Stage& stage, Bytes boundary) {
  constexpr std::int64_t with_gradient = 2;
  std::int64_t tensors = 0;
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    tensors += with_gradient * expert_checkpoints(problem, stage.chunks[i]);
    if (begins_model(stage, i)) continue;
    tensors += with_gradient - static_cast<std::int64_t>(reads_received(problem, stage.chunks[i]));
  }
  return tensors * boundary;
}

}  // namespace zeroplan
