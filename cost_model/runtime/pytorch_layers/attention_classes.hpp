#pragma once
// Which kernels of attention do Transformers' classes have, and which do they take by themselves?

#include "cost_model/legality/legality.hpp"
#include "cost_model/legality/reasons.hpp"

namespace zeroplan {

/// What the model's class attends by where nobody says it: SDPA, or eagerly where it has no SDPA
/// (modeling_utils.py get_correct_attn_implementation, huggingface/transformers v5.24.0); as the
/// package does where the runtime's settings name it.
AttentionKernel attention_of_class(const Problem& problem);

/// The model's class has no SDPA, and is asked about as if it had.
bool lacks_sdpa(const Problem& problem);

namespace legality {
/// What flash-attn's package and the classes refuse where attn_implementation names it.
Reason flash_attention_package(const Problem& p);
}  // namespace legality

namespace rules {
inline constexpr Rule flash_attention{"H-flash-attention", Field::knobs, set_of({}),
                                      legality::flash_attention_package};
}  // namespace rules

}  // namespace zeroplan
