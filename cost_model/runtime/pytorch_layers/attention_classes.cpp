// Which kernels of attention do Transformers' classes have, and which do they take by themselves?
// Front door: attention_of_class.
#include "cost_model/runtime/pytorch_layers/attention_classes.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace zeroplan {
namespace {

struct AttentionClass {
  std::string_view family;
  std::string_view name;  // in messages
  bool sdpa = true;
  bool package = true;  // flash-attn
};

// _supports_sdpa and _supports_flash_attn, where one of them is not set: models/*/modeling_*.py
// (huggingface/transformers v5.24.0).
constexpr AttentionClass lacking[] = {{"bloom", "BLOOM", false, false},
                                      {"gemma2", "Gemma 2", false, true},
                                      {"gpt_oss", "gpt-oss", false, true},
                                      {"llama4_text", "Llama 4", true, false}};

const AttentionClass& class_of(const Problem& p) {
  constexpr static AttentionClass complete{};
  const auto at = std::ranges::find(lacking, p.model.family, &AttentionClass::family);
  return at == std::end(lacking) ? complete : *at;
}

bool by_package(const Problem& p) {
  return p.runtime.attn_implementation == AttnImplementation::flash_attention_2;
}

}  // namespace

AttentionKernel attention_of_class(const Problem& p) {
  return class_of(p).sdpa || by_package(p) ? AttentionKernel::flash : AttentionKernel::unfused;
}

bool lacks_sdpa(const Problem& p) {
  return p.training.attention == AttentionKernel::flash && !by_package(p) && !class_of(p).sdpa;
}

// csrc/flash_attn/flash_api.cpp mha_fwd (Dao-AILab/flash-attention v2.8.3).
legality::Reason legality::flash_attention_package(const Problem& p) {
  if (!by_package(p)) return std::nullopt;
  if (p.training.attention == AttentionKernel::unfused) {
    return "attn_implementation=flash_attention_2 is fused: --attention flash";
  }
  if (const AttentionClass& its = class_of(p); !its.package) {
    return fmt::format(
        "Transformers has no flash_attention_2 for {}: leave attn_implementation to its class",
        its.name);
  }
  return because(p.training.precision == Precision::fp32,
                 "flash_attention_2 computes in 16 bits, not in fp32: attn_implementation=sdpa");
}

}  // namespace zeroplan
