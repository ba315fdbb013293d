#pragma once
// Activation memory in closed form, where there is no step program: the paper's arithmetic, and
// FSDP2 with a zero-bubble schedule.

#include "cost_model/problem.hpp"
#include "cost_model/units.hpp"

namespace zeroplan {

/// What one micro-batch leaves in one layer for the backward pass, nothing recomputed except what
/// `selective` recompute drops. Units: bytes on one rank.
/// Sources: fsdp2: torchtitan models/llama3/model.py and distributed/activation_checkpoint.py.
/// zero-paper: ZeRO section 3.2, 12 x h x b x s elements.
Bytes layer_activations(const Problem& problem, LayerKind kind);

/// The input of one layer: all that full recompute keeps of it.
Bytes layer_input(const Problem& problem);

/// What the backward pass of one layer holds besides the saved tensors.
Bytes backward_temporaries(const Problem& problem, LayerKind kind);

struct LossMemory {
  Bytes saved;  // kept from the head's forward to its backward
  Bytes peak;   // most that head and loss hold at once, `saved` included
};

/// Output head and cross entropy of one micro-batch on the last stage.
/// Sources: torchtitan components/loss.py (12 bytes a logit); Hugging Face loss/loss_utils.py (14).
LossMemory loss_memory(const Problem& problem);

/// Micro-batches x chunks of stage `rank` whose activations are alive together at its peak.
/// Sources: Megatron-Core core/pipeline_parallel/schedules.py (1F1B, interleaved); Qi et al. 2023
/// (arXiv 2401.10241) Table 2 and section 6 (zero-bubble); DeepSeek-V3 report Table 2 (DualPipe).
std::int64_t chunks_in_flight(const Problem& problem, std::int64_t rank);

}  // namespace zeroplan
