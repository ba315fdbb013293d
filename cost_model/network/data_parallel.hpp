#pragma once
// What keeps replicas alike: gradients summed, divided parameters gathered.

#include "cost_model/network/load_list.hpp"

namespace zeroplan {

/// Elements sent a step by each runtime, times (N-1)/N:
///   ZeRO paper, zeroplan    0: 2 Psi   1: 2 Psi   2: (m+1) Psi   3: 3 m Psi
///   DeepSpeed               the same; stage 1 that accumulates in fp32: 3 Psi
///   Megatron-Core           0: 2 Psi   1: 2 Psi;  Megatron-FSDP 2: (m+1) Psi   3: 3 m Psi
///   FSDP2                   2: 2 m Psi   3: 3 m Psi;  under a pipeline 2 Psi
///   DDP                     2 Psi
///   nanotron                0: 2 Psi   1: 3 Psi
/// Under HSDP N is the sharding group, and the shards of the gradients, Psi / N, are all-reduced
/// over the replicas: once a step, in FSDP2 after each reduction.
/// Sources: ZeRO (arXiv 1910.02054) section 7; with m > 1 what each stage has to do again. For the
/// runtimes see the functions in data_parallel.cpp, and the programs of those that has_calls names.
void add_data_parallel(LoadList& loads,
                       const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage);

}  // namespace zeroplan
