#pragma once
// nanotron, Hugging Face's pre-training library (@67c5ebb6).
//
// Parameters are 16-bit; each micro-batch's 16-bit gradients are added to an fp32 buffer, which
// stays whole on every rank. Without ZeRO, PyTorch's DDP reduces that buffer in buckets with the
// last backward pass. With ZeRO 1 it is all-reduced after the passes; each rank steps on its slice
// of every parameter, in a Python loop over the tensors, and all gather the slices one tensor at a
// time. Layers are Megatron-like tensor parallelism in plain PyTorch: linears gather their input
// and, in the backward pass, once more; what reductions still read is kept from the allocator
// (PyTorch 2.1). The loss holds the fp32 logits twice. Pipelines are GPipe (AFAB) or 1F1B, one
// chunk a rank; nothing outlives the graph of a micro-batch.
//
// Since 2025-06 (@7bc99232, the last change of its code) it trains Qwen2Config, which need not be
// Qwen2: queries, keys and values stay views of one projection's output, the norm before them is
// written out in fp32, the 16-bit logits stay until the loss is known, and log-sum-exps until the
// step ends. Neither its pipelines run, nor ZeRO 1 over replicas.

#include "cost_model/legality/legality.hpp"

namespace zeroplan {

extern const RuntimeCode nanotron_code;
extern const RuleBook nanotron_rules;

std::vector<std::int64_t> nanotron_split(const Problem& problem);
UpdateHabits nanotron_update(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage);

}  // namespace zeroplan
