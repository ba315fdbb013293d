#pragma once
// A transformer layer as Megatron-Core runs it, with Transformer Engine or its own local modules.
// Sources: TransformerEngine pytorch/module/{layernorm_linear,linear,grouped_linear}.py,
// pytorch/attention; Megatron-LM core/transformer/{attention,mlp,transformer_layer}.py,
// core/fusions, core/transformer/moe.
//
// The writers below add events in the direction the BlockWriter is at, so that a part which is
// recomputed has its forward pass written once more in the backward pass.

#include <vector>

#include "cost_model/program/block.hpp"
#include "cost_model/question/model.hpp"
#include "cost_model/runtime/megatron/host_groups.hpp"
#include "cost_model/runtime/megatron/shape.hpp"

namespace zeroplan {

/// What a module saved goes to the host, where it is one that does; its elements have so many
/// bytes.
inline void leave(BlockWriter& w,
                  const MegatronShape& s,
                  OffloadModule module,
                  const TensorList& tensors,
                  std::int64_t element) {
  if (s.host != nullptr) s.host->leave(w, module, tensors, element);
}
/// The backward pass has left the module.
inline void left(BlockWriter& w, const MegatronShape& s, OffloadModule module) {
  if (s.host != nullptr) s.host->left(w, module);
}

/// What a norm saves.
struct NormTensors {
  Tensor output;
  Tensor statistics;
};

/// Writes a norm. `output`: bytes in which those who read it keep what it made.
NormTensors write_norm(BlockWriter& w, const MegatronShape& s, Module module, Bytes output);
/// Writes the norm before the MLP or the experts; where they share the one before attention, its
/// tensors alone.
NormTensors write_pre_mlp_norm(BlockWriter& w, const MegatronShape& s, LayerKind kind);

/// What a column-parallel linear reads, `features` wide: under sequence parallelism gathered for
/// it, else nothing new.
Tensor write_column_linear_input(BlockWriter& w, const MegatronShape& s, std::int64_t features);

/// The gradient of so many elements of a weight, which is added to the main gradient when the
/// linear's backward pass is done: a tensor where no product adds it there.
void write_weight_gradient(BlockWriter& w, const MegatronShape& s, std::int64_t elements);

/// The backward pass of a column-parallel linear, which makes `outputs` on this rank: gathers the
/// input again under sequence parallelism, for the weight gradient alone, gives the input's
/// gradient, and frees the input.
Tensor write_column_linear_backward(BlockWriter& w,
                                    const MegatronShape& s,
                                    Module linear,
                                    Tensor input,
                                    std::int64_t features,
                                    std::int64_t outputs);

/// A row-parallel linear: its output is whole before the reduction. Gives the reduced one.
Tensor write_row_linear_forward(BlockWriter& w,
                                const MegatronShape& s,
                                Module linear,
                                std::string_view name,
                                Category category = Category::temporaries);

/// The backward pass of a row-parallel linear: gathers the output gradient under sequence
/// parallelism and gives the gradient of its input, `features` wide.
Tensor write_row_linear_backward(BlockWriter& w,
                                 const MegatronShape& s,
                                 Module linear,
                                 std::string_view name,
                                 std::int64_t features);

/// Frees a tensor of 16 bits when the weight gradient that reads it is done, or at once where that
/// keeps a narrower copy.
void free_with_weights(BlockWriter& w, const MegatronShape& s, Tensor tensor);

/// What the backward pass of an activation keeps of what the activation reads: that itself, or a
/// narrower copy beside it.
Tensor write_activation_input(BlockWriter& w,
                              const MegatronShape& s,
                              Tensor read,
                              bool of_checkpoint = false);
/// A narrower copy of what an activation reads, as the activation's backward pass reads it, while
/// that runs; else none.
Tensor widen_activation_input(BlockWriter& w,
                              const MegatronShape& s,
                              Tensor kept,
                              bool of_checkpoint = false);

/// Frees the output gradient of a row-parallel linear. The linear's weight gradient reads it,
/// unless sequence parallelism gathered a copy.
void free_output_gradient(BlockWriter& w, const MegatronShape& s, Tensor gradient);

/// What a gated delta rule's backward pass reads, from its first projection to its last.
struct DeltaRuleTensors {
  Tensor projected = BlockWriter::none;
  Tensor convolution = BlockWriter::none;  // its weights, where context parallelism divides them
  TensorList heads;                        // normalised queries and keys
  TensorList kernel;                       // what the rule reads and keeps
  Tensor output = BlockWriter::none;
  Tensor norm_statistics = BlockWriter::none;
  Tensor normed = BlockWriter::none;  // times what the gate makes of it
  Tensor gate = BlockWriter::none;
};

/// What a state space's backward pass reads, from its first projection to its last one.
struct StateSpaceTensors {
  Tensor projected = BlockWriter::none;
  TensorList parameters;               // of this rank, where context parallelism divides them
  Tensor scanned = BlockWriter::none;  // before the gate
  Tensor gated = BlockWriter::none;    // which the norm reads
  Tensor norm_statistics = BlockWriter::none;
};

/// Attention half of a layer: what its backward pass reads, and its result.
struct AttentionTensors {
  NormTensors norm;
  TensorList saved;                        // read by the attention kernel's backward pass
  Tensor log_sum_exp = BlockWriter::none;  // likewise, of fused attention
  TensorList scores;        // of attention that is not fused, which softmax's backward pass reads
  TensorList inputs;        // of the up-projections of latents: queries', then keys' and values'
  TensorList latents;       // and what these are made of
  TensorList before_norms;  // queries and keys, where they have some; among what is saved
  TensorList operands;      // of the kernel: queries, keys, values; saved too, or made again
  Tensor output = BlockWriter::none;            // of the kernel
  Tensor gate = BlockWriter::none;              // of that, or all that it is a view of
  Tensor projection_input = BlockWriter::none;  // where it is not the kernel's own output
  DeltaRuleTensors delta_rule;                  // of linear attention, instead of all but the norm
  StateSpaceTensors state_space;                // or of a state space
  Tensor dropout_mask = BlockWriter::none;
  Tensor result = BlockWriter::none;  // projected, before the residual is added
};
AttentionTensors write_attention_forward(BlockWriter& w, const MegatronShape& s);
/// The backward pass of the attention half: gives the gradient of the norm's output. The gradient
/// of the result is the caller's.
Tensor write_attention_backward(BlockWriter& w, const MegatronShape& s, AttentionTensors t);

/// The same of a layer whose attention is linear.
AttentionTensors write_linear_attention_forward(BlockWriter& w, const MegatronShape& s);
Tensor write_linear_attention_backward(BlockWriter& w,
                                       const MegatronShape& s,
                                       const AttentionTensors& t);

/// The same of a layer that is a state space.
AttentionTensors write_state_space_forward(BlockWriter& w, const MegatronShape& s);
Tensor write_state_space_backward(BlockWriter& w,
                                  const MegatronShape& s,
                                  const AttentionTensors& t);

/// MLP or expert half of a layer.
struct FeedForwardTensors {
  NormTensors norm;
  TensorList routing;  // of experts only
  Tensor shared_fc1 = BlockWriter::none, shared_activation = BlockWriter::none;
  TensorList shared_gate;              // what it weighs, and its weight of each token
  Tensor latents = BlockWriter::none;  // of experts, where they have such
  Tensor expert_input = BlockWriter::none;
  Tensor fc1_output = BlockWriter::none;
  Tensor activation_output = BlockWriter::none;
  TensorList saved;  // all that stands between norm and dropout
  Tensor dropout_mask = BlockWriter::none;
  Tensor result = BlockWriter::none;
};
FeedForwardTensors write_mlp_forward(BlockWriter& w, const MegatronShape& s);
/// The part of the MLP half between norm and dropout, into `t`.
void write_linears_forward(BlockWriter& w, const MegatronShape& s, FeedForwardTensors& t);
Tensor write_mlp_backward(BlockWriter& w, const MegatronShape& s, const FeedForwardTensors& t);
FeedForwardTensors write_moe_forward(BlockWriter& w, const MegatronShape& s);
/// The part of the expert half between norm and dropout, into `t`.
void write_experts_forward(BlockWriter& w, const MegatronShape& s, FeedForwardTensors& t);
Tensor write_moe_backward(BlockWriter& w, const MegatronShape& s, FeedForwardTensors t);
/// The shared experts, an MLP whose linears gather and reduce by themselves (Megatron-Core
/// @d98e8a64dd core/transformer/moe/shared_experts.py, without moe_shared_expert_overlap): gives
/// their output, or none where there are none; what the backward pass reads goes to `t`.
Tensor write_shared_experts(BlockWriter& w, const MegatronShape& s, FeedForwardTensors& t);
/// Their backward pass. Frees the norm's output too, which the routed experts no longer read.
void write_shared_experts_backward(BlockWriter& w,
                                   const MegatronShape& s,
                                   const FeedForwardTensors& t);
/// The activation output of the routed experts alone, which moe_act recompute makes again.
Tensor write_expert_activation(BlockWriter& w, const MegatronShape& s);

/// One layer that keeps what its backward pass reads, except what selective recompute drops.
Block megatron_layer(const Problem& problem, LayerKind kind, RepeatSet dropped);
/// The same where groups of what it keeps wait on the host.
Block megatron_layer(const Problem& problem, RepeatSet dropped, const HostPlace& place);
inline Block megatron_layer(const Problem& problem, LayerKind kind) {
  return megatron_layer(problem, kind, repeats(problem));
}

/// What leaves of a layer for the host, of groups.
Bytes moved_by_groups(const Problem& problem, const Leaving& layer);

/// A group of layers that keeps its input alone, and runs its forward pass again in the backward
/// pass.
Block megatron_recomputed_layers(const Problem& problem, const std::vector<LayerKind>& kinds);

}  // namespace zeroplan
