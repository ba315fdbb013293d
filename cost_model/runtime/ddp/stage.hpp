#pragma once
// A rank of PyTorch DistributedDataParallel as a step program.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// fp32 parameters under autocast: 16-bit copies of the weights from the forward pass until their
/// backward pass; gradients from the first backward pass until the end of the step, beside buckets
/// as large unless they are views of them; a rank alone has no buckets. Sources: pytorch
/// torch/csrc/distributed/c10d/reducer.hpp, aten/src/ATen/autocast_mode.cpp (recalled).
StageProgram ddp_stage(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage);

/// A block of its chain by itself (question/runtime_code.hpp).
Block ddp_block(const Problem& problem,
                const WeightInventory& inventory,
                BlockKind block,
                LayerKind layer,
                RepeatSet policy);

/// The sums of gradients, once a step: accumulation runs under no_sync, as its documentation has
/// it. The first bucket, of 1 MiB, is not told apart.
std::vector<Call> ddp_update_calls(const Problem& problem,
                                   const WeightInventory& inventory,
                                   const Stage& stage);

}  // namespace zeroplan
