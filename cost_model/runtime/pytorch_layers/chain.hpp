#pragma once
// A decoder on one rank without a pipeline, block after block.

#include <functional>

#include "cost_model/program/stage_program.hpp"
#include "cost_model/runtime/pytorch_layers/block.hpp"

namespace zeroplan {

/// Where a block stands, and which micro-batch passes it.
struct EagerPlace {
  EagerLink link;
  bool first = false;  // the embedding: its backward pass is the last
  bool last = false;   // the head
  int sort = 0;        // of a layer: LayerSorts
  MicroBatch micro_batch = MicroBatch::first;
};

/// Layers that do not do the same around their computation, 0 to 5 by their place in the model;
/// where there is none, all do.
using LayerSorts = std::function<int(std::int64_t layer)>;

/// Embedding, all layers and head, each written once a kind and sort by `write`; `checkpoint` is
/// the layers'.
ChunkProgram eager_chain(const Problem& problem,
                         Checkpoint checkpoint,
                         const std::function<Block(const EagerPlace&)>& write,
                         const LayerSorts& sorts = {});

/// What the backward passes of the first micro-batch put under this name, in order.
std::vector<Bytes> put_sizes(const ChunkProgram& chunk, const Carried& kind);
/// Takes all of it.
void take_all(BlockWriter& w, const ChunkProgram& chunk, const Carried& kind);

/// What stays through every step, rounded as the allocator does; nothing for no bytes.
void add_resident(StageProgram& program, std::string_view name, Bytes bytes, Category category);

/// Whether a table of the positions' sines stands on the GPU: not of learned positions, nor of
/// latent attention, which turns few features.
bool has_rotary_table(const Problem& problem);

/// cuBLAS workspaces, rotary table, token ids and labels.
void add_plain_buffers(StageProgram& program,
                       const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage);

/// Each resident tensor as one, the optimizer states after the first step.
Startup plain_startup(const Problem& problem,
                      const WeightInventory& inventory,
                      const Stage& stage,
                      const StageProgram& program);

}  // namespace zeroplan
