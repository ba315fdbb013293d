#pragma once
// PyTorch DistributedDataParallel around Hugging Face's layers, under autocast.
//
// Every rank holds all: fp32 parameters, gradients and moments. The residual stream, norms and
// rotations are in fp32 too. Autocast makes 16-bit copies of what matrix products read: of each
// weight one, which stays until the backward pass has read it, and of a norm's output one for each
// linear. A gradient leaves its product in 16 bits, is widened, and is copied into a bucket of
// 25 MiB, the first of 1 MiB; full buckets are all-reduced while the backward pass goes on, and
// copied back, unless gradients are views of them, which they are not while micro-batches add up.
// Accumulation runs under no_sync, so that only the last micro-batch reduces. Between steps
// gradients are set to none, buckets stay. The optimizer steps on everything, on every rank.

#include "cost_model/legality/legality.hpp"

namespace zeroplan {

extern const RuntimeCode ddp_code;
extern const RuleBook ddp_rules;

}  // namespace zeroplan
