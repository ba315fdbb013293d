#pragma once
// What the blocks of a model chunk are called, and how long each of them and of its modules
// computes.

#include <string>
#include <vector>

#include "cost_model/pipeline/stage_time.hpp"
#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// Seconds of the modules of each kind of block.
struct StepModules {
  explicit StepModules(const Problem& problem);
  const ModuleTimes& layer(LayerKind kind) const { return layers[kind]; }

  ModuleTimes embedding;
  ByKind<ModuleTimes> layers;  // nothing of a kind that the model lacks
  ModuleTimes mtp_input;
  ModuleTimes head;
};

/// One block of a chunk's program.
struct ChunkPart {
  std::string name;  // "embedding", "layer 7", "layers 4 to 7", "head"
  PassTime seconds;  // that its kernels take for one micro-batch; 0: it only exchanges
  const ModuleTimes* modules = nullptr;  // of each of its layers; null: it has no modules
};

/// One entry a block of `runs`, in the order of the forward pass. `chunk`: which of the stage's
/// chunks they are. Seconds of kernels alone: neither the host nor collectives are in them. Refers
/// to `modules`.
std::vector<ChunkPart> chunk_parts(const Problem& problem,
                                   const BlockTimes& times,
                                   const StepModules& modules,
                                   const Stage& stage,
                                   std::size_t chunk,
                                   const Runs& runs);

}  // namespace zeroplan
