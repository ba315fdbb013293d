// What does recompute repeat? Front door: repeats.
#include "cost_model/rank/recomputed.hpp"

namespace zeroplan {
namespace {

constexpr RepeatSet inside_moe =
    bit_of(RecomputeModule::moe_act) | bit_of(RecomputeModule::shared_experts);

}  // namespace

RepeatSet repeated_by(RecomputeModule module) {
  const bool inside = (inside_moe & bit_of(module)) != 0;
  return whole_layer | bit_of(module) | (inside ? bit_of(RecomputeModule::moe) : 0);
}

RepeatSet without_contained(RepeatSet set) {
  if ((set & whole_layer) != 0) return whole_layer;
  return (set & bit_of(RecomputeModule::moe)) != 0 ? set & ~inside_moe : set;
}

RepeatSet repeats(const Problem& problem) {
  if (problem.layout.recompute == Recompute::none) return 0;
  if (problem.layout.recompute == Recompute::full || repeated_layers(problem).every > 0) {
    return whole_layer;
  }
  return code_of(problem).repeats_selectively(problem);
}

RepeatedLayers repeated_layers(const Problem& problem) {
  return code_of(problem).repeated_layers(problem);
}

bool recomputes_layer(const Problem& problem, const LayerRange& chunk, std::int64_t layer) {
  if (problem.layout.recompute == Recompute::none) return false;
  return repeated_layers(problem).has(layer - chunk.first);
}

MtpLayers mtp_layers(const Problem& problem) {
  const RepeatedLayers repeated = repeated_layers(problem);
  const bool takes = problem.layout.recompute != Recompute::none &&
                     (!repeated.first || !problem.model.mtp_kinds.empty());
  MtpLayers layers;
  for (const LayerKind kind : kinds_of_mtp_module(problem.model)) {
    layers.push_back({kind, takes && repeated.has(std::ssize(layers))});
  }
  return layers;
}

bool drops(const Problem& problem, RecomputeModule module) {
  return problem.layout.recompute == Recompute::selective &&
         (problem.runtime.megatron.recompute_modules & repeated_by(module)) != 0;
}

bool has_own_input_norm(const Problem& problem) {
  return problem.runtime.megatron.local_layers() || problem.model.attention.mla;
}

bool has_own_pre_mlp_norm(const Problem& problem, LayerKind kind) {
  return problem.runtime.megatron.local_layers() || has_experts(kind);
}

bool has_own_norms(const Problem& problem) {
  return has_own_input_norm(problem) || problem.model.moe;
}

std::int64_t recomputed_layers(const Problem& problem,
                               const LayerRange& chunk,
                               LayerKind kind,
                               std::int64_t count) {
  if (problem.layout.recompute == Recompute::none) return 0;
  const RepeatedLayers repeated = repeated_layers(problem);
  const std::int64_t all = chunk.last - chunk.first;
  if (repeated.every == 0) {
    if (!repeated.first || *repeated.first >= all) return count;
    return layers_of_kind(problem.model, chunk.first, chunk.first + *repeated.first, kind);
  }
  if (count == all) return count / repeated.every;
  std::int64_t recomputed = 0;
  for (std::int64_t i = chunk.first; i < chunk.last && count > 0; ++i) {
    recomputed += kind_of(problem.model, i) == kind && repeated.has(i - chunk.first);
  }
  return recomputed;
}

std::int64_t recomputed_layers(const Problem& problem, const Stage& stage, LayerKind kind) {
  std::int64_t sum = 0;
  for (const LayerRange& chunk : stage.chunks) {
    const std::int64_t count = layers_of_kind(problem.model, chunk.first, chunk.last, kind);
    sum += recomputed_layers(problem, chunk, kind, count);
  }
  return sum;
}

}  // namespace zeroplan
