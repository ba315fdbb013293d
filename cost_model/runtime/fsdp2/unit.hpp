#pragma once
// One FSDP2 unit: parameters that are gathered, resharded and reduced together.
// Source: pytorch torch/distributed/fsdp/_fully_shard/{_fsdp_param_group,_fsdp_collectives}.py
// @010ae4a89: collectives copy in on a stream of their own, reductions on another; what computes
// lies on the default stream.

#include <functional>

#include "cost_model/program/block.hpp"
#include "cost_model/runtime/fsdp2/recipe.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// What of a unit one group of ranks divides.
struct Fsdp2Share {
  std::string_view group;
  Bytes gathered;      // by an all-gather
  Bytes reduce_input;  // of a reduce-scatter
  Bytes reduced;       // its output, which replicas of the group add up
};

struct Fsdp2Unit {
  std::vector<TensorSpec> parameters;  // unsharded, as the computation reads them
  std::array<Fsdp2Share, 2> shares;    // experts have a group of their own
  bool replicated = false;             // HSDP
  Bytes cast;                          // this rank's shard in the gathered format
  Bytes gathered;                      // the all-gather's output; of one rank there is none
  Bytes cast_alone;                    // the largest parameter that one rank holds, as computed
  Bytes accumulated;                   // all gradients in the reduction's format
  Bytes cut;                           // the same, this rank's part under tensor parallelism
  Bytes reduce_input;                  // the same, padded
  Bytes held_input;                    // of that, what is held until the next unit is reduced
  Bytes reduced;                       // this rank's shard of their sum
  Bytes gradient;                      // the same in the parameters' format
  Bytes largest;                       // of its whole parameters, in their own format
  bool ends_in_norm = false;           // its last parameter is that of a layer's norm
};

/// The unit of these weights; `linears_in_8_bits`: matrices are gathered in one byte. `widths`: of
/// the groups that divide it.
Fsdp2Unit fsdp2_unit(const Problem& problem,
                     std::span<const Weight> weights,
                     bool linears_in_8_bits,
                     const ShardWidths& widths);
inline Fsdp2Unit fsdp2_unit(const Problem& problem,
                            std::span<const Weight> weights,
                            bool linears_in_8_bits) {
  return fsdp2_unit(problem, weights, linears_in_8_bits, shard_widths(problem));
}

/// The units of a rank. Layers of a kind are alike.
struct Fsdp2Units {
  Fsdp2Unit embedding, head;
  ByKind<Fsdp2Unit> layers;
  Fsdp2Unit ends;  // embedding and head as one
  // What a loss in parts reduces of the head, and what its backward pass does.
  Fsdp2Unit output, before_output;

  const Fsdp2Unit& layer(LayerKind kind) const { return layers[kind]; }
};

Fsdp2Units fsdp2_units(const Problem& problem,
                       const WeightInventory& inventory,
                       const ShardWidths& widths);
inline Fsdp2Units fsdp2_units(const Problem& problem, const WeightInventory& inventory) {
  return fsdp2_units(problem, inventory, shard_widths(problem));
}

/// Tensors that outlive the block that made them.
inline constexpr Carried fsdp2_gathered{"all-gather output", Category::communication_buffers,
                                        Stream::gather};
inline constexpr Carried fsdp2_parameter{"unsharded parameter", Category::communication_buffers};
inline constexpr Carried fsdp2_gradient{"unsharded gradient", Category::gradients};
inline constexpr Carried fsdp2_accumulated{"accumulated unsharded gradients", Category::gradients};
inline constexpr Carried fsdp2_reduce_input{"reduce-scatter input",
                                            Category::communication_buffers};
inline constexpr Carried fsdp2_shard_gradient{"gradient shard", Category::gradients,
                                              Stream::reduce};
inline constexpr Carried fsdp2_replica_sum{"sum of replicas", Category::gradients, Stream::reduce};
/// With a pipeline the last stage's output is held by the schedule until its backward pass ends.
inline constexpr Carried fsdp2_stage_output{"output of the last stage", Category::activations};
inline constexpr std::string_view fsdp2_embedding_rows = "rows of the embedding gradient";

/// Casts the shard and gathers the unit, for which `during` waits.
void write_unshard(BlockWriter& w, const Fsdp2Unit& unit, During during);

/// Copies the gathered unit out, parameter by parameter, for this block alone.
std::vector<Tensor> write_copy_out(BlockWriter& w, const Fsdp2Unit& unit);

/// What becomes of the reduced gradient: the first micro-batch leaves it, the later ones add to it.
enum class GradientShard { is_new, is_added };

/// What of a reduction stays until the backward pass is over: the sum of replicas, where it is not
/// the gradient itself.
Bytes held_replica_sum(const Fsdp2Unit& unit, GradientShard shard, const Fsdp2Recipe& recipe);

/// How a unit's gradients go: all that are copied into the reduction's input, but for the last
/// parameter's where the recipe holds that.
struct Fsdp2Gradients {
  std::function<void()> free_first, free_last;
};

/// All of a unit's together, of which the last is small where that is a norm's.
inline Fsdp2Gradients all_of(const Fsdp2Unit& unit, std::function<void()> free) {
  return unit.ends_in_norm ? Fsdp2Gradients{std::move(free), {}}
                           : Fsdp2Gradients{{}, std::move(free)};
}

/// Reduces the unit's gradients. `held`: the reduction's input of the unit before, kept until now.
/// `during`: each backward pass, or once a step. Leaves held_replica_sum to the rank.
void write_reduce(BlockWriter& w,
                  const Fsdp2Unit& unit,
                  Bytes held,
                  GradientShard shard,
                  const Fsdp2Recipe& recipe,
                  const Fsdp2Gradients& gradients,
                  During during = During::backward);

}  // namespace zeroplan
