#pragma once
// What torchtitan's code did at a date: the changes of its history that move memory.

#include "cost_model/runtime/pytorch_layers/block.hpp"

namespace zeroplan {

struct Fsdp2Recipe {
  EagerCode code;
  bool cosine_rotary = false;     // the table has cosine and sine of each feature
  bool casts_rotary = false;      // is an fp32 input of each layer, which FSDP2 casts
  bool rotary_in_layers = false;  // each layer has its own fp32 table
  OptimizerCode optimizer = OptimizerCode::fused;
  bool loss_in_forward = false;  // the root's forward pass computes it
  // Under a CUDA graph gradients are set to zero, and live from step to step.
  bool keeps_gradients = false;
  bool reduces_on_own_stream = false;  // the reduction's input too
  bool holds_last_gradient = false;    // of a unit, until its reduction has returned
  bool adds_at_once = false;           // each gradient to those of other micro-batches, when made
  bool widens_gradients = false;       // to the reduction's format what is not reduced at once
  bool holds_replica_sum = false;      // what replicas added up, until the backward pass is over
  // Each tensor-parallel rank computes the gradient of the whole word embedding.
  bool whole_embedding_gradient = false;
  bool expandable_segments = false;
};

inline bool is_pipelined(const Problem& problem) {
  return problem.layout.pp > 1;
}

/// PyTorch that runs: what is set, or else of the day; 100 x major + minor.
std::int64_t torch_version(const Fsdp2Settings& set);

/// Whether this micro-batch leaves gradients whole that are reduced later: of a pipeline, when all
/// have passed; else with the last one's backward pass.
bool leaves_whole(const Problem& problem, MicroBatch micro_batch);

/// Whether operators copy what tensor parallelism gathered into one tensor, and what it reduces
/// into the order of the ranks: in torchtitan's layers, compiled too (an H100's profile has 80 such
/// kernels in 8 layers, 14 % of the step), unless they send in parts that are written in place.
bool joins_ranks(const Problem& problem);

/// The recipe of this problem. Sources: pytorch/torchtitan at the commits named beside each date;
/// Hugging Face's layers do not depend on it.
Fsdp2Recipe fsdp2_recipe(const Problem& problem);

}  // namespace zeroplan
