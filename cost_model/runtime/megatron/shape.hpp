#pragma once
// What Megatron-Core's settings make of the sizes of a layer.

#include "cost_model/program/call.hpp"
#include "cost_model/program/layer_shape.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/megatron/own_linears.hpp"
#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {

/// Whether the bias of the experts' last product is weighted by the probabilities in fp32 and added
/// by PyTorch, expert by expert (core/transformer/moe/experts.py TEGroupedMLP._apply_bias).
inline bool weights_expert_biases(const Problem& problem) {
  const MegatronSettings& set = problem.runtime.megatron;
  const bool has_biases = problem.model.moe && problem.model.moe->expert_bias;
  return has_biases && !set.local_layers() && !set.use_transformer_engine_op_fuser;
}

/// Whether what a dispatch sends depends on how many ranks divide the experts, and on their nodes:
/// where a token goes once to each (core/transformer/moe/fused_a2a.py).
inline bool counts_expert_ranks(const MegatronSettings& settings) {
  return settings.moe_token_dispatcher_type == TokenDispatcher::flex;
}

class HostGroups;

struct MegatronShape : LayerShape {
  RepeatSet dropped = 0;       // by selective recompute
  HostGroups* host = nullptr;  // of the layer that is written, where any wait there

  const MegatronSettings& settings() const { return problem.runtime.megatron; }

  /// Whether selective recompute drops what this module makes.
  bool drops(RecomputeModule module) const { return (dropped & repeated_by(module)) != 0; }

  /// Whether selective recompute drops the output of the norm before attention, or before this kind
  /// of MLP.
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

  /// The activation of the experts runs again by itself.
  bool checkpoints_expert_activation() const {
    return drops(RecomputeModule::moe_act) && !drops(RecomputeModule::moe);
  }

  /// What tensor parallelism adds up of `width` partial sums a token; nothing without it.
  Bytes partial(std::int64_t width) const {
    return problem.layout.tp > 1 ? features(width) : Bytes{};
  }
  /// Transformer Engine's user buffers move what a linear gathers and scatters in parts, beside the
  /// product (TransformerEngine pytorch/module/base.py initialize_ub).
  Beside beside_linear() const {
    return settings().tp_comm_overlap && sequence_parallel() ? Beside::parts : Beside::nothing;
  }
  /// Backward input gradients travel while weight gradients are computed, and inputs while input
  /// gradients are (core/tensor_parallel/layers.py
  /// LinearWithGradAccumulationAndAsyncCommunication).
  Beside beside_weights() const {
    return beside_linear() == Beside::nothing && settings().async_tensor_allreduce
               ? Beside::products
               : beside_linear();
  }

  /// One-byte mask of hidden dropout.
  Bytes dropout_mask() const { return settings().hidden_dropout ? rows(token.hidden) : Bytes{}; }
  /// A linear's saved input: as the weight gradient's GEMM reads it.
  Bytes linear_input(Bytes in_16_bits) const {
    return is_quantized(problem.training.precision)
               ? quantized_bytes(problem, in_16_bits.count() / 2)
               : in_16_bits;
  }
  /// Bytes an element of that.
  std::int64_t linear_input_element() const {
    return is_quantized(problem.training.precision) ? 1 : token.element;
  }
  /// Whether linears whose input something else keeps in 16 bits save that instead of a copy as
  /// their products read it: attention's projection and the shared experts (Megatron-LM
  /// core/transformer/attention.py and moe/shared_experts.py set_save_original_input, since 0.14).
  bool saves_original_inputs() const {
    constexpr std::int64_t of_8_bits = 206, of_4_bits = 207;
    const Precision precision = problem.training.precision;
    const std::int64_t engine = settings().transformer_engine_version;
    if (precision == Precision::nvfp4) return engine >= of_4_bits;
    return precision == Precision::fp8 && settings().fp8_recipe != Fp8Recipe::delayed &&
           engine >= of_8_bits;
  }
  /// Whether SwiGLU keeps a copy of its input in 8 bits, without scales, and not the input
  /// (Megatron-LM core/fusions/fused_bias_swiglu.py). What a checkpoint keeps is the input itself,
  /// but in the code of DualPipe, whose layers are DeepSeek-V3's (arXiv 2412.19437, section 3.3.3).
  bool narrows_activation_input(bool of_checkpoint) const {
    return settings().activation_func_fp8_input_store && (!of_checkpoint || is_dualpipe());
  }
  bool is_dualpipe() const { return settings().pipeline_code == PipelineCode::dualpipe; }
  /// Whether a weight gradient that waits keeps its operands in the 8 bits that its product reads,
  /// in that order alone: so those of DeepSeek-V3 (section 3.3.1). Transformer Engine keeps both
  /// orders, as many bytes as 16 bits have.
  bool narrows_waiting_operands() const {
    return is_dualpipe() && is_quantized(problem.training.precision);
  }
  /// Whether a linear hands autograd a tensor as large as its weight, which goes when hooks have
  /// seen it.
  bool makes_weight_gradients() const {
    return problem.runtime.kind == Runtime::megatron &&
           handed_by_linears(settings()) == HandedGradient::tensor;
  }
  /// The norm's output before experts: the router reads it in 16 bits, the shared experts and the
  /// projection to latents as their products do.
  Bytes router_input() const {
    const MoeSpec& moe = *problem.model.moe;
    const bool quantized = is_quantized(problem.training.precision);
    const bool shared = quantized && !saves_original_inputs() && moe.shared_intermediate_size > 0;
    const bool latent = quantized && moe.latent_size > 0;
    return residual() + (shared + latent) * linear_input(residual());
  }
};

/// The shape of a layer of which recompute runs so much again.
inline MegatronShape megatron_shape(const Problem& problem,
                                    RepeatSet dropped = 0,
                                    HostGroups* host = nullptr) {
  return {layer_shape(problem), dropped & ~whole_layer, host};
}

}  // namespace zeroplan
