#pragma once
// Which kind of work is a kernel? By its name, as libraries and PyTorch spell them.

#include <array>
#include <optional>
#include <string_view>

#include "cost_model/question/collective.hpp"

namespace zeroplan {

/// What a rank's time in a step goes to.
enum class Work {
  products,      // matrix products
  attention,     // fused; of attention that stores its scores, products and softmax are the others'
  memory_bound,  // norms, activations, residuals, rotary, embedding, loss: what only moves bytes
  optimizer,     // with clipping
  copies,        // between host and device, and within it by the copy engines
  other,         // kernels that no pattern names
  collective,
  idle,  // no kernel runs: gaps, bubbles, waiting for the host
};

template <>
struct Spellings<Work> {
  static constexpr std::array<std::string_view, 8> value{
      "products", "attention",     "memory-bound", "optimizer",
      "copies",   "other kernels", "collectives",  "idle"};
};

/// The work of a CUDA or HIP kernel, a copy ("Memcpy HtoD"), or an operator of PyTorch
/// ("aten::mm"). The patterns stand in work_kind.cpp, each with whose names they are.
Work work_of(std::string_view name);

/// The collective of a kernel of NCCL or RCCL, or of what PyTorch noted ("allreduce",
/// "_allgather_base", "gloo:all_gather"); none where the name does not say it
/// ("ncclDevKernel_Generic").
std::optional<Collective> collective_of(std::string_view name);

}  // namespace zeroplan
