#pragma once
// Which memory-bound kernels one rank runs for one micro-batch, and the bytes they move.

#include <vector>

#include "cost_model/kernel/memory_bound.hpp"
#include "cost_model/program/kernel.hpp"
#include "cost_model/question/problem.hpp"
#include "cost_model/rank/layer_part.hpp"

namespace zeroplan {

/// One kernel of the forward pass and its counterpart: bytes each reads and writes.
struct Traffic {
  Module module{};
  Access access = Access::streaming;
  Bytes forward;
  Bytes backward;
  std::int64_t times = 1;  // so many alike in each run: parts of the loss, experts
};

/// Norms, rotary embedding, activation, residuals, what routing moves, and casts of what linears
/// multiply, of one layer; each as its module runs it once (program/kernel.hpp). Counted
/// from what each kernel must read and write as fused kernels do it (Transformer Engine, compiled
/// PyTorch); code that fuses less repeats that, see kernels::Shared.
std::vector<Traffic> layer_traffic(const Problem& problem,
                                   LayerKind kind,
                                   LayerPart part = LayerPart::whole);

/// Word embedding, positions and dropout, on the first stage.
std::vector<Traffic> embedding_traffic(const Problem& problem);

/// Final norm and loss, on the last stage: of the loss one part (rank/loss_parts.hpp), and beside
/// it what sums up the gradients of all parts.
std::vector<Traffic> head_traffic(const Problem& problem);

}  // namespace zeroplan
