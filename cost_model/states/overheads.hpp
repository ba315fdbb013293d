#pragma once
// Device memory outside the caching allocator: the CUDA context, NCCL's communicators, and what
// Transformer Engine sends from.

#include <cstdint>
#include <string_view>
#include <vector>

#include "cost_model/question/problem.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

/// A group of ranks that communicate, as the layout creates it.
struct ProcessGroup {
  std::string_view name;  // tp, cp, dp, pp, ep, expert-dp
  std::int64_t ranks = 1;
  bool spans_nodes = false;
};

/// Every group of more than one rank. Ranks are placed tp, cp, dp, pp from the innermost outwards
/// (Megatron-Core training/initialize.py), so a group spans nodes when its stride x size exceeds
/// one.
std::vector<ProcessGroup> process_groups(const Problem& problem);

/// Whether the cluster brings a measurement of this group's memory.
bool is_measured(const Problem& problem, const ProcessGroup& group);

/// NCCL's device buffers on one GPU for one group, at default channel counts: as measured, else an
/// estimate.
/// Source: NCCL 2.30 channel.cc, transport/p2p.cc and net.cc: 6 MiB a channel for bookkeeping, 12
/// MiB a channel and ring inside a node, 20 MiB over the network; all-to-all connects every pair.
Bytes communicator_bytes(const Problem& problem, const ProcessGroup& group);

/// Transformer Engine's user buffers on one GPU: one for each of twelve products, as large as a
/// micro-batch's hidden state; the eight that gather are of 8 bits where products are. None without
/// tp_comm_overlap.
/// Source: TransformerEngine @d0067d0da pytorch/module/base.py initialize_ub, common/
/// comm_gemm_overlap/comm_gemm_overlap.cpp; Megatron-LM @d98e8a64dd training/initialize.py
/// _initialize_tp_communicators.
Bytes user_buffer_bytes(const Problem& problem);

/// What the library of Megatron's flex dispatcher holds, instead of NCCL's buffers to each peer.
/// HybridEP: room for the tokens of all ranks, all sent to one, with the probabilities of the
/// experts beside and a scale for 128 values; dispatch and combination share it. DeepEP: tokens on
/// their way in each channel, of each rank beside.
/// Source: deepseek-ai/DeepEP branch hybrid-ep @94a9f8f csrc/hybrid_ep/buffer/intranode.cu; main
/// @dd758ca deep_ep/buffer.py get_dispatch_config, csrc/config.hpp get_nvl_buffer_size_hint.
Bytes dispatch_buffer_bytes(const Problem& problem);

/// What PyTorch's asynchronous tensor parallelism reduces by way of, in symmetric memory: two parts
/// of a hidden state, one that is computed and one that peers read. None where it is not on.
/// Source: pytorch torch/distributed/_symmetric_memory/__init__.py get_symm_mem_workspace,
/// _pipelined_produce_and_all2all @2.14.
Bytes symmetric_memory_bytes(const Problem& problem);

/// All of them: what depends on a micro-batch.
inline Bytes token_buffer_bytes(const Problem& problem) {
  return user_buffer_bytes(problem) + dispatch_buffer_bytes(problem) +
         symmetric_memory_bytes(problem);
}

/// The communicators of all groups; `zero-paper` counts none.
Bytes communicator_bytes(const Problem& problem);

/// CUDA context with the kernels of a training step loaded: as measured, else an estimate: 400-550
/// MiB are common on A100 and H100; the driver loads kernels lazily, so the figure varies.
/// `zero-paper` counts none.
Bytes context_bytes(const Problem& problem);

/// That estimate.
Bytes lazy_context(const Problem& problem);

}  // namespace zeroplan
