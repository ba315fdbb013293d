#pragma once
// The whole step of one pipeline rank as a program: what stays, and the blocks of each model chunk.

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <optional>
#include <vector>

#include "cost_model/program/footprint.hpp"
#include "cost_model/schedule/pass.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Equal blocks, one after another.
struct Run {
  std::shared_ptr<const FoldedBlock> block;
  std::int64_t count = 1;
  friend bool operator==(const Run&, const Run&) = default;
};

/// The runs of a chunk, few enough to need no heap.
using Runs = boost::container::small_vector<Run, 8>;

/// A run, where bytes are all that is asked for.
struct RunOfBytes {
  const BlockBytes* block;
  std::int64_t count = 1;
};
using RunsOfBytes = boost::container::small_vector<RunOfBytes, 8>;

/// The bytes of runs, which must outlive them.
inline RunsOfBytes runs_of_bytes(const Runs& runs) {
  RunsOfBytes list;
  for (const Run& run : runs) list.push_back({&run.block->bytes, run.count});
  return list;
}

/// Adds blocks at the end of a chain.
inline void append(Runs& runs,
                   const std::shared_ptr<const FoldedBlock>& block,
                   std::int64_t count = 1) {
  if (!runs.empty() && runs.back().block == block) {
    runs.back().count += count;
  } else {
    runs.push_back({block, count});
  }
}

/// The blocks of one model chunk (virtual stage), in forward order.
struct ChunkProgram {
  Runs runs;
  Runs first_runs;        // of the step's first micro-batch; empty: it is like the others
  Runs last_runs;         // of the step's last micro-batch, if of several; empty: as the others
  bool receives = false;  // its input comes from another chunk, and its input gradient goes there
  bool sends = false;     // its output goes to another chunk
  bool keeps_output = false;  // a sent output stays until its backward pass is done
  TensorSpec batch{{}, {}, Category::workspace};  // what a forward pass reads beside its input
  bool keeps_batch = false;  // checkpoints hold it until the layers' backward passes are done
  std::vector<Runs> each;    // of each micro-batch, where no two need be alike; `runs`: the first

  /// The blocks that a micro-batch passes; `last`: the number of the step's last one.
  const Runs& runs_of(std::int32_t micro_batch, std::int32_t last) const {
    if (!each.empty()) return each[static_cast<std::size_t>(micro_batch)];
    if (micro_batch == 0 && !first_runs.empty()) return first_runs;
    return micro_batch == last && !last_runs.empty() ? last_runs : runs;
  }
  /// Whether the backward pass of the block that is so far from the chunk's begin finds the batch
  /// gone: an embedding, which no checkpoint holds.
  bool drops_batch_before(std::size_t block) const {
    return keeps_batch && !receives && block == 0;
  }
  friend bool operator==(const ChunkProgram&, const ChunkProgram&) = default;
};

/// The last micro-batch that these passes run.
inline std::int32_t last_micro_batch(const std::vector<Pass>& order) {
  std::int32_t last = 0;
  for (const Pass& pass : order) last = std::max(last, pass.micro_batch);
  return last;
}

/// The pipeline of a rank that receives while it computes.
struct EarlyReceipts {
  std::int64_t ranks = 1;
  std::int64_t group = 1;  // micro-batches a chunk runs before the next one does
};

struct StageProgram {
  std::vector<TensorSpec> resident;  // alive through every step
  Block step;                        // its forward pass ends the step: the optimizer
  Block checkpoint;                  // its forward pass saves a checkpoint after the step
  std::vector<ChunkProgram> chunks;
  Bytes boundary;                 // x0: what crosses between stages for one micro-batch
  bool borders_resident = false;  // received tensors have buffers among what is resident
  bool forgets_borders = false;   // what crosses lives as long as its micro-batch's graph
  bool passes_differ = false;     // also of chunks whose layers are of the same kinds
  std::optional<EarlyReceipts> early;
};

/// Whether a forward pass of the chunk ends with an output that goes elsewhere and is not kept.
inline bool hands_over(const StageProgram& program, std::int32_t chunk) {
  const ChunkProgram& own = program.chunks[static_cast<std::size_t>(chunk)];
  return own.sends && !own.keeps_output;
}

/// The program of a runtime that needs no blocks made before.
template <StageProgram (*stage)(const Problem&, const WeightInventory&, const Stage&)>
StageProgram from_weights(const Problem& problem,
                          const WeightInventory& inventory,
                          const Stage& own,
                          const MegatronBlockSource&) {
  return stage(problem, inventory, own);
}

/// The single tensors behind what is resident, in the order they come: only a replay of the
/// allocator tells them apart from their sums.
struct Startup {
  Block construction;               // its forward pass: everything before the first step
  bool empties_cache = false;       // of the allocator, then
  std::vector<TensorSpec> moments;  // made by the first optimizer step, or by loading a checkpoint
  std::vector<TensorSpec> loading;  // held while a checkpoint's moments are made
};

}  // namespace zeroplan
