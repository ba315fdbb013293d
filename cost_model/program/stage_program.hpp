#pragma once
// The whole step of one pipeline rank as a program: what stays, and the blocks of each model chunk.

#include <vector>

#include "cost_model/memory/model_states.hpp"
#include "cost_model/program/footprint.hpp"

namespace zeroplan {

/// Equal blocks, one after another.
struct Run {
  std::shared_ptr<const FoldedBlock> block;
  std::int64_t count = 1;
};

/// The blocks of one model chunk (virtual stage), in forward order.
struct ChunkProgram {
  std::vector<Run> runs;
  bool receives = false;  // its input comes from another chunk, and its input gradient goes there
  bool sends = false;     // its output goes to another chunk
};

struct StageProgram {
  std::vector<TensorSpec>
      construction;                  // the modules' own weights, freed once the buffers hold them
  std::vector<TensorSpec> resident;  // alive through every step
  std::vector<TensorSpec> step;      // alive together in the optimizer step
  std::vector<ChunkProgram> chunks;
  Bytes boundary;  // x0: what crosses between stages for one micro-batch
};

/// The single tensors behind the model states, in the order they come: only a replay of the
/// allocator tells them apart from their sums.
struct StateTensors {
  std::vector<TensorSpec>
      modules;  // the weights as modules make them; freed once buffers hold them
  std::vector<TensorSpec> masters;  // fp32 copies of the part of each weight that this rank updates
  std::vector<TensorSpec> moments;  // made by the first optimizer step
};
StateTensors megatron_state_tensors(const Problem& problem,
                                    const WeightInventory& inventory,
                                    const Stage& stage);

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

}  // namespace zeroplan
