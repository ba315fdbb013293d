#pragma once
// Which core attention a rank computes.

#include <optional>

#include "cost_model/kernel/attention.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Core attention of one micro-batch on one rank: heads divided by tp, queries by cp, against all
/// keys; causal work is balanced over the cp ranks.
AttentionShape core_attention(const Problem& problem);

/// What a rank of a ring computes of the `whole` core attention with its own keys, and with those
/// of each other rank: half of its queries with all of them or all with half, as the causal mask
/// leaves (TransformerEngine pytorch/attention/dot_product_attention/context_parallel.py
/// AttnFuncWithCPAndKVP2P).
AttentionShape own_keys(const AttentionShape& whole);
AttentionShape keys_of_another(const AttentionShape& whole);

/// Whether the kernel of windowed layers is given a mask: where the model's code makes one, which
/// it does of as many tokens as the window has (huggingface/transformers v5.24.0 masking_utils.py
/// _ignore_causal_mask_sdpa).
bool masks_windows(const Problem& problem);

/// Elements of a mask of a micro-batch, which all heads share.
std::int64_t mask_elements(const Problem& problem);

/// Core attention of the model's windowed layers; nothing where it is that of the others: where the
/// window holds the whole sequence or the runtime's kernel computes what lies outside it too.
/// Given a mask the kernel computes all scores, those of later keys among them (pytorch
/// aten/src/ATen/native/transformers/cuda/mem_eff_attention/kernel_forward.h).
std::optional<AttentionShape> windowed_attention(const Problem& problem);

}  // namespace zeroplan
