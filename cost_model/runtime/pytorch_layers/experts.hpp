#pragma once
// Private to the feed-forward half of a layer: router, routed and shared experts.

#include "cost_model/runtime/pytorch_layers/mlp.hpp"

namespace zeroplan {

inline constexpr std::int64_t wide_element = 4;  // fp32

/// The linears that read a layer of experts' input: the router, and those of shared experts.
std::int64_t linears_before_experts(const EagerShape& s);

/// Whether anything keeps what a layer of experts reads: routed experts keep copies of its tokens.
bool keeps_expert_input(const EagerShape& s);

/// The gradients of the router's weight and of its input, which is added to the others' `input`;
/// gives the sum. Frees what the router kept.
Tensor write_router_backward(BlockWriter& w,
                             const EagerShape& s,
                             const EagerFeedForward& t,
                             const OnGradient& on_gradient,
                             Tensor input);

/// Gives what the experts gave together.
Tensor write_experts(EagerPass& pass, const EagerShape& s, EagerFeedForward& t);
/// Gives the gradient of what they read, and frees what the forward pass kept.
Tensor write_experts_backward(BlockWriter& w,
                              const EagerShape& s,
                              const EagerFeedForward& t,
                              const OnGradient& on_gradient);

/// The same of experts of which each works on all tokens (EagerStyle::repeats_tokens).
Tensor write_repeated_experts(EagerPass& pass, const EagerShape& s, EagerFeedForward& t);
Tensor write_repeated_experts_backward(BlockWriter& w,
                                       const EagerShape& s,
                                       const EagerFeedForward& t,
                                       const OnGradient& on_gradient);

}  // namespace zeroplan
