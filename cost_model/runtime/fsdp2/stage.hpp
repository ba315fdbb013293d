#pragma once
// A pipeline rank of PyTorch FSDP2 as a step program.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// Blocks of the rank wrapped in FSDP2 units: gathered one ahead, resharded by policy, reduced in
/// the backward pass; with a pipeline gathered once a step and reduced at its end.
/// Sources: pytorch torch/distributed/fsdp/_fully_shard @010ae4a89,
/// torch/distributed/pipelining/stage.py @013861033; torchtitan distributed/fsdp.py @b5bcd76c6.
StageProgram fsdp2_stage(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage);

/// What a block sends by itself (question/runtime_code.hpp).
Block fsdp2_block(const Problem& problem,
                  const WeightInventory& inventory,
                  BlockKind block,
                  LayerKind layer,
                  RepeatSet policy);

Startup fsdp2_startup(const Problem& problem,
                      const WeightInventory& inventory,
                      const Stage& stage,
                      const StageProgram& program);

}  // namespace zeroplan
