#pragma once
// A pipeline rank of Megatron-Core as a step program.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// The blocks of a model on one rank, made once for all stages and for every layout that differs
/// only in what they do not depend on: pp, dp, ep, ZeRO.
struct MegatronBlocks {
  std::shared_ptr<const FoldedBlock> embedding, dense, moe, recomputed_dense, recomputed_moe, head;
};
MegatronBlocks megatron_blocks(const Problem& problem);

/// The program of a pipeline rank on Megatron-Core.
/// Sources: Megatron-LM core/distributed/param_and_grad_buffer.py,
/// core/optimizer/distrib_optimizer.py and megatron_layer.hpp.
StageProgram megatron_stage(const Problem& problem,
                            const WeightInventory& inventory,
                            const MegatronBlocks& blocks,
                            const Stage& stage);

Startup megatron_startup(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const StageProgram& program);

}  // namespace zeroplan
