#pragma once
// What Megatron-Core's settings make of the sizes of a layer.

#include "cost_model/program/layer_shape.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {

struct MegatronShape : LayerShape {
  const MegatronSettings& settings() const { return problem.runtime.megatron; }

  /// Whether selective recompute drops what this module makes.
  bool drops(RecomputeModule module) const { return zeroplan::drops(problem, module); }

  /// Whether it drops the output of the norm before attention, or before this kind of MLP.
  bool drops_input_norm() const {
    return drops(RecomputeModule::layernorm) && has_own_input_norm(problem);
  }
  bool drops_pre_mlp_norm(LayerKind kind) const {
    return drops(RecomputeModule::layernorm) && has_own_pre_mlp_norm(problem, kind);
  }

  /// The shared experts run again by themselves, not with the whole expert layer.
  bool drops_shared_experts_alone() const {
    return drops(RecomputeModule::shared_experts) && !drops(RecomputeModule::moe);
  }

  /// One-byte mask of hidden dropout.
  Bytes dropout_mask() const { return settings().hidden_dropout ? rows(token.hidden) : Bytes{}; }
  /// A linear's saved input: as the weight gradient's GEMM reads it.
  Bytes linear_input(Bytes in_16_bits) const {
    return is_quantized(problem.training.precision)
               ? quantized_bytes(problem, in_16_bits.count() / 2)
               : in_16_bits;
  }
};

inline MegatronShape megatron_shape(const Problem& problem) {
  return {layer_shape(problem)};
}

}  // namespace zeroplan
