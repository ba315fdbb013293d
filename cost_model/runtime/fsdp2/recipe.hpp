#pragma once
// What torchtitan's code did at a date: the changes of its history that move memory.

#include "cost_model/runtime/pytorch_layers/block.hpp"

namespace zeroplan {

struct Fsdp2Recipe {
  EagerCode code;
  bool casts_rotary = false;       // the fp32 table is an input of each layer, which FSDP2 casts
  bool rotary_in_layers = false;   // each layer has its own fp32 table
  bool foreach_optimizer = false;  // lists of temporaries; else one fused kernel
  bool reduces_on_own_stream = false;  // the reduction's input too
  bool holds_last_gradient = false;    // of a unit, until its reduction has returned
  // Each tensor-parallel rank computes the gradient of the whole word embedding.
  bool whole_embedding_gradient = false;
  bool expandable_segments = false;
};

/// The recipe of this problem. Sources: pytorch/torchtitan at the commits named beside each date;
/// Hugging Face's layers do not depend on it.
Fsdp2Recipe fsdp2_recipe(const Problem& problem);

}  // namespace zeroplan
