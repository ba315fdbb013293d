// What of 8 bits does Megatron-Core refuse?
#include "cost_model/runtime/megatron/reasons.hpp"

namespace zeroplan::megatron_reasons {

using namespace legality;  // NOLINT: what is wrong is said in its words

// TransformerEngine pytorch/quantization.py check_mxfp8_support.
Reason recipe_of_gpu(const Problem& p) {
  constexpr std::int64_t blackwell = 100;
  return because(
      p.training.precision == Precision::fp8 && p.runtime.megatron.fp8_recipe == Fp8Recipe::mxfp8 &&
          p.cluster.gpu.compute_capability < blackwell,
      "{} has no scales of 32 elements, which fp8_recipe mxfp8 needs", p.cluster.gpu.name);
}

// Megatron's own linears (core/tensor_parallel/layers.py) multiply what they are given: Transformer
// Engine's autocast (core/fp8_utils.py, fp4_utils.py get_fp4_context) does not reach them.
Reason own_linears_are_wide(const Problem& p) {
  return because(is_quantized(p.training.precision) && p.runtime.megatron.local_layers(),
                 "precision {} needs Transformer Engine: Megatron's own layers would multiply in "
                 "16 bits",
                 name_of(p.training.precision));
}

Reason eight_bit_attention(const Problem& p) {
  return because(
      p.runtime.megatron.fp8_dot_product_attention && !is_quantized(p.training.precision),
      "fp8_dot_product_attention needs precision fp8 or nvfp4");
}

// core/transformer/transformer_config.py __post_init__; the output layer has a weight of its own
// (core/extensions/transformer_engine.py TELMHeadColumnParallelLinear).
Reason eight_bit_output_layer(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  if (!set.fp8_output_proj) return std::nullopt;
  if (p.training.precision != Precision::fp8 || set.fp8_recipe != Fp8Recipe::mxfp8) {
    return "fp8_output_proj needs precision fp8 and fp8_recipe mxfp8";
  }
  return because(p.model.tied_embeddings, "fp8_output_proj needs embeddings that are not tied");
}

// core/transformer/transformer_config.py __post_init__, which asks it of 8 bits alone.
Reason ends_in_16_bits(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  if (!set.first_last_layers_bf16 || p.training.precision != Precision::fp8) return std::nullopt;
  if (set.fp8_recipe == Fp8Recipe::delayed) {
    return "first_last_layers_bf16 needs an fp8_recipe that is not delayed";
  }
  const std::int64_t most = p.model.layers / p.layout.pp;
  return because(
      std::max(set.num_layers_at_start_in_bf16, set.num_layers_at_end_in_bf16) > most,
      "at most {} layers at either end may be in 16 bits: as many as a stage of pp {} has", most,
      p.layout.pp);
}

// core/transformer/transformer_config.py __post_init__.
Reason eight_bit_activation_input(const Problem& p) {
  const auto& moe = p.model.moe;
  const bool swiglu = moe ? moe->gated && !moe->clamped : p.model.mlp.gated;
  return because(p.runtime.megatron.activation_func_fp8_input_store && !swiglu,
                 "activation_func_fp8_input_store is for SwiGLU alone");
}

// training/arguments.py, core/transformer/transformer_config.py.
Reason eight_bit_parameters(const Problem& p) {
  if (!p.runtime.megatron.fp8_param_gather) return std::nullopt;
  if (p.training.precision != Precision::fp8) return "fp8_param_gather needs precision fp8";
  return because(p.layout.zero == ZeroStage::none,
                 "fp8_param_gather needs the distributed optimizer: ZeRO 1 or above");
}

}  // namespace zeroplan::megatron_reasons
