#pragma once
// First estimate of what a runtime allocates around the layers: gathered parameters, reduction
// buckets, library workspaces.

#include "cost_model/memory/model_states.hpp"

namespace zeroplan {

/// Gathered parameters and reduction buckets at the highest moment of the backward pass.
/// Sources: FSDP2 torch/distributed/fsdp/_fully_shard (five times a unit); DeepSpeed
/// runtime/zero/stage_1_and_2.py, stage3.py, partitioned_param_coordinator.py; Megatron-FSDP
/// core/distributed/fsdp/src; DDP torch/csrc/distributed/c10d/reducer.hpp (buckets as large as the
/// gradients).
Bytes communication_buffers(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage);

/// Workspaces that stay for the whole run: cuBLAS and Transformer Engine scratch space, and
/// Transformer Engine's placeholder weight gradients, one a distinct weight shape, which exist when
/// weight gradients are accumulated inside the GEMM (pytorch/module/base.py get_dummy_wgrad).
Bytes workspace(const Problem& problem, const WeightInventory& inventory, const Stage& stage);

/// Temporaries of the optimizer step besides the widened gradients.
/// Source: DeepSpeed runtime/zero/stage_1_and_2.py and stage3.py `step` (flattened copy of the
/// owned gradients); runtime/fp16/fused_optimizer.py (list and flat copy, 8 bytes a parameter).
Bytes step_temporaries(const Problem& problem,
                       const StageElements& elements,
                       const ModelStates& states);

}  // namespace zeroplan
