#pragma once
// PyTorch DistributedDataParallel around Hugging Face's layers, under autocast.
//
// Every rank holds all: fp32 parameters, gradients and moments. Autocast makes a 16-bit copy of
// each weight in the forward pass and keeps it until the backward pass has read it. A gradient
// appears in fp32 and is copied into a bucket of 25 MiB, the first of 1 MiB; full buckets are
// all-reduced while the backward pass goes on, and copied back, unless gradients are views of them.
// Accumulation runs under no_sync, so that only the last micro-batch reduces. Between steps
// gradients are set to none, buckets stay. The optimizer steps on everything, on every rank.

#include "cost_model/legality/legality.hpp"

namespace zeroplan {

extern const RuntimeCode ddp_code;
extern const RuleBook ddp_rules;

}  // namespace zeroplan
