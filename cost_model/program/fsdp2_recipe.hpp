#pragma once
// What torchtitan's code did at a date: the changes of its history that move memory.

#include <cstdint>

#include "cost_model/problem.hpp"
#include "cost_model/program/eager_pass.hpp"

namespace zeroplan {

/// How head and loss hold the logits, E = tokens x vocabulary of this rank, at the loss's peak.
enum class LossCode {
  fp32_logits,     // the model gives fp32 logits and the loop keeps them: 16 E
  plain,           // 12 E
  parallel,        // over tensor-parallel ranks: 16 E
  chunked_logits,  // logits in parts, all log-softmax results kept: 6.5 E of 8 parts
  chunked_hidden,  // head and loss together, part by part
  compiled,        // 4 E
  huggingface,     // logits kept in the output object: 14 E
};

struct Fsdp2Recipe {
  EagerStyle style;
  LossCode loss = LossCode::plain;
  std::int64_t loss_chunks = 1;
  bool whole_root = false;  // embedding, final norm and head in the root unit, never resharded
  bool foreach_optimizer = false;      // lists of temporaries; else one fused kernel
  bool reduces_on_own_stream = false;  // the reduction's input too
  bool expandable_segments = false;
};

/// The recipe of this problem. Sources: pytorch/torchtitan at the commits named beside each date;
/// Hugging Face's layers do not depend on it.
Fsdp2Recipe fsdp2_recipe(const Problem& problem);

}  // namespace zeroplan
