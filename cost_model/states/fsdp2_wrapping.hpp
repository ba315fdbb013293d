#pragma once
// Which parameters FSDP2 gathers together, which stay gathered, in which format, and how they are
// cut.

#include <span>

#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Whether embedding, final norm and head are one unit: tied, but for shares_ends; in torchtitan
/// before 83e694105, and where accelerate leaves them to the root. Else the embedding is a unit,
/// and norm and head are another.
bool joins_ends(const Problem& problem);

/// Whether tied embedding and output layer are two parameters for FSDP2, gathered and reduced each:
/// torchtitan's spmd_types, the default since 5ab3a0fd1, registers a new one a module
/// (protocols/module.py _spmd_distribute_state @0.3.0), which the model then ties again.
bool unties_ends(const Problem& problem);

/// Whether the tied weight is one parameter of two units, each of which gathers and reduces it:
/// torchtitan shards both modules before it ties them (0.2.2 models/llama3/infra/parallelize.py
/// apply_fsdp, models/qwen3/model/model.py init_weights). The second reduction adds to what the
/// first one left.
bool shares_ends(const Problem& problem);

/// Whether the last layer stays gathered from forward to backward pass unless all are resharded: in
/// torchtitan before 83e694105.
bool keeps_last_layer(const Problem& problem);

/// Whether accelerate wraps layers and the model alone, and reshards the model's own parameters
/// after its forward pass like theirs: before 1.14 (1.13.0 utils/fsdp_utils.py
/// fsdp2_prepare_model).
bool leaves_ends_to_root(const Problem& problem);

/// Whether matrices of the layers are gathered in one byte an element: torchtitan has 8-bit linears
/// only where it trains in fp8 (components/quantization/float8.py, enable_fsdp_float8_all_gather).
bool gathers_in_8_bits(const Problem& problem);

/// Bytes an element in which gradients are reduced: torchtitan's `mixed_precision_reduce` is fp32,
/// accelerate's policy has one format for both (v1.15.0 utils/dataclasses.py
/// FullyShardedDataParallelPlugin.set_mixed_precision).
std::int64_t reduced_bytes(const Problem& problem);

/// Whether gradients of all but the last micro-batch stay whole on every rank: Transformers'
/// Trainer runs them in accelerate's no_sync (trainer.py, accelerator.py @1.15.0).
bool defers_reduction(const Problem& problem);

/// Whether the experts of a layer, one tensor [experts, rows, columns], are cut along their rows
/// where the group that shards them has more ranks than experts: Shard(1), in torchtitan from
/// 18a46d427 on (distributed/fsdp.py), and with expert parallelism before it (0.2.2
/// models/llama4/infra/parallelize.py apply_fsdp, shard_placement_fn). Else Shard(0) pads them to
/// one for each rank, as FSDP2 does with what Transformers and accelerate hand it.
bool cuts_expert_rows(const Problem& problem);

/// Whether the experts of a layer are a module that is wrapped by itself, reduced before the rest
/// of the layer, whose reduction lets their input go: with expert parallelism, until fully_shard
/// took a mesh for each parameter (torchtitan 0.2.2 models/llama4/infra/parallelize.py apply_fsdp).
bool wraps_experts_apart(const Problem& problem);

/// Whether this weight of a layer is one of them: the router stays as wide as it is.
inline bool is_linear_in_8_bits(const Weight& weight) {
  return weight.columns > 1 && weight.module != "router";
}

/// The weights of the output layer, the word embedding where they are tied: a loss in parts reduces
/// them by themselves, as soon as its last part is done.
std::span<const Weight> output_weights(const WeightInventory& inventory);

/// What else the head's unit holds where it is not joined with the embedding: the final norm.
std::span<const Weight> weights_before_output(const WeightInventory& inventory);

/// Whether the rank that holds the head runs the backward pass of each micro-batch before the
/// forward pass of the next one: under every schedule but GPipe.
inline bool head_alternates(const Problem& problem) {
  return problem.layout.pp == 1 || problem.layout.schedule != Schedule::gpipe;
}

}  // namespace zeroplan
