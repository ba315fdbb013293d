#pragma once
// What keeps replicas alike, of runtimes that exchange all a rank holds at once: gradients summed,
// divided parameters gathered.

#include "cost_model/program/block.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Bytes of a bucket of PyTorch's DistributedDataParallel by default (torch/csrc/distributed/c10d/
/// reducer.hpp, kDefaultBucketBytesCap).
inline constexpr std::int64_t ddp_bucket = 25 * mebi;

/// When gradients are reduced and parameters gathered, in which formats and portions.
struct ReplicaRecipe {
  std::int64_t gradient_bytes = 0;  // an element, on the wire
  std::int64_t parameter_bytes = 0;
  bool scatters = false;           // reduce-scatter: each rank gets its part. Else all-reduce
  During reduced = During::step;   // or in the backward pass of each micro-batch
  bool gathers_in_passes = false;  // divided parameters, in both passes of each micro-batch
  bool gathers_updated = false;    // once a step, what each rank has updated
  bool four_bits = false;          // gradients, by two all-to-alls (ZeRO++ qgZ)
  bool divides_replicas = false;   // what is summed over replicas is divided, and gathered again
  // Elements a call carries at most; 0: all in one.
  std::int64_t reduce_bucket = 0;
  std::int64_t gather_bucket = 0;
};

/// In the formats of the problem's state recipe, by the stage of ZeRO (arXiv 1910.02054, section 7;
/// with several micro-batches what each stage has to do again). 0: all-reduce. 1: reduce-scatter,
/// then all-gather of the updated parameters. 2: the same, but only a part of the sum is kept, so
/// each micro-batch is reduced. 3: parameters are gathered for each pass of each micro-batch
/// instead.
ReplicaRecipe zero_recipe(const Problem& problem);

/// The calls of a rank of `stage`: those of passes as one micro-batch makes them, the others of the
/// whole step. Experts have groups of their own, but where the runtime shards nothing. Under HSDP
/// ranks exchange in `shard`, and the shards of the gradients are summed over `replica` once a
/// step, where what the replicas divide is gathered again. A second copy of the parameters (ZeRO++
/// hpZ) is what the backward pass gathers.
std::vector<Call> replica_calls(const Problem& problem,
                                const WeightInventory& inventory,
                                const Stage& stage,
                                const ReplicaRecipe& recipe);

/// First and last stage each hold the tied word embedding, and sum its gradient at the end of the
/// step, in so many bytes an element.
void add_tied_embedding(std::vector<Call>& calls,
                        const Problem& problem,
                        const WeightInventory& inventory,
                        const Stage& stage,
                        std::int64_t gradient_bytes);

/// Under sequence parallelism weights that each rank of tensor parallelism holds whole saw its rows
/// of the tokens alone: their gradients are summed in one call at the end of the step.
void add_replicated_weights(std::vector<Call>& calls,
                            const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage,
                            std::int64_t gradient_bytes);

/// Writes those that this part of the step waits for.
void write_calls(BlockWriter& w, const std::vector<Call>& calls, During during);

/// What so many micro-batches and the end of their step make of them.
std::vector<Call> in_step(std::vector<Call> calls, std::int64_t micro_batches);

}  // namespace zeroplan
