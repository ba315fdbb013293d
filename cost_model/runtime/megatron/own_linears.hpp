#pragma once
// What do Megatron's own linears hand to autograd of a weight? The output layer is one of them,
// beside any layers.

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// What of a weight's gradient autograd gets: nothing, where the product has added it to the main
/// one; a tensor; or one that all weights of its shape share, which stays.
enum class HandedGradient { nothing, tensor, shared };

/// What Megatron's own linears hand to autograd. Once a weight's gradient is in the main one that
/// means nothing, but hooks need a tensor since release 0.4, a new one each time. Since 0.14 it is
/// Transformer Engine's placeholder where that is installed, whoever runs the layers. Source:
/// Megatron-LM core/tensor_parallel/layers.py LinearWithGradAccumulationAndAsyncCommunication, as
/// of 28766b55fb and e7c55de99e; TransformerEngine pytorch/module/base.py get_dummy_wgrad, since
/// 2.3.
constexpr HandedGradient handed_by_own_linears(const MegatronSettings& set) {
  constexpr std::int64_t first_hooks = 4, takes_placeholders = 14;
  if (!set.gradient_accumulation_fusion) return HandedGradient::tensor;
  if (set.megatron_core < first_hooks) return HandedGradient::nothing;
  const bool shared = set.megatron_core >= takes_placeholders && set.has_placeholders();
  return shared ? HandedGradient::shared : HandedGradient::tensor;
}

/// What the linears in the layers hand to autograd of a weight's gradient.
constexpr HandedGradient handed_by_linears(const MegatronSettings& set) {
  if (set.local_layers()) return handed_by_own_linears(set);
  if (!set.gradient_accumulation_fusion) return HandedGradient::tensor;
  return set.has_placeholders() ? HandedGradient::shared : HandedGradient::nothing;
}

/// Whether the table of the word embedding is the output layer's too on this rank, and autograd
/// adds what that hands on: a tensor waits for it through the backward pass.
inline HandedGradient handed_by_tied_head(const Problem& problem) {
  const bool tied = problem.model.tied_embeddings && problem.layout.pp == 1;
  return tied && problem.runtime.kind == Runtime::megatron
             ? handed_by_own_linears(problem.runtime.megatron)
             : HandedGradient::nothing;
}

}  // namespace zeroplan
