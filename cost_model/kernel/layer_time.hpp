#pragma once
// How long one rank computes for one micro-batch: a layer, the embedding, the head with its loss.
// Communication is not in it.

#include <algorithm>
#include <vector>

#include "cost_model/kernel/host_time.hpp"
#include "cost_model/question/problem.hpp"
#include "cost_model/rank/layer_part.hpp"
#include "cost_model/rank/recomputed.hpp"

namespace zeroplan {

/// Seconds the GPU is busy, by kind of kernel.
struct KernelTime {
  double gemm = 0;
  double attention = 0;
  double memory_bound = 0;
  double gaps = 0;  // between kernels, and of kernels too small to be listed

  constexpr double total() const { return gemm + attention + memory_bound + gaps; }
  constexpr KernelTime& operator+=(const KernelTime& other) {
    gemm += other.gemm;
    attention += other.attention;
    memory_bound += other.memory_bound;
    gaps += other.gaps;
    return *this;
  }
  friend constexpr KernelTime operator+(KernelTime a, const KernelTime& b) { return a += b; }
};

/// One block, for one micro-batch on one rank.
struct BlockTime {
  KernelTime forward;
  KernelTime recompute;        // what of forward runs again before backward
  KernelTime input_gradient;   // backward but for the weights: zero-bubble's B
  KernelTime weight_gradient;  // zero-bubble's W
  HostTime host;

  KernelTime backward() const { return recompute + input_gradient + weight_gradient; }
  /// What passes until the block is done: the slower of GPU and host.
  double forward_seconds() const { return std::max(forward.total(), host.forward); }
  double backward_seconds() const { return std::max(backward().total(), host.backward); }

  BlockTime& operator+=(const BlockTime& other) {
    forward += other.forward;
    recompute += other.recompute;
    input_gradient += other.input_gradient;
    weight_gradient += other.weight_gradient;
    host.forward += other.host.forward;
    host.backward += other.host.backward;
    return *this;
  }
};

/// Forward kernels that recompute repeats for the same reasons.
struct RepeatedKernels {
  RepeatSet repeated_by = 0;
  KernelTime time;
};

/// Sustained seconds of one layer on the cluster's GPU, before it is said what recompute repeats.
struct LayerKernels {
  BlockTime once;  // without recompute; no host time
  std::vector<RepeatedKernels> parts;

  /// What of forward runs again.
  KernelTime recompute(RepeatSet repeats) const;
};

/// Does not read the layout's recompute policy.
LayerKernels layer_kernels(const Problem& problem,
                           LayerKind kind,
                           LayerPart part = LayerPart::whole);

/// The same with what the layout's policy repeats, and the host.
BlockTime layer_time(const Problem& problem, LayerKind kind);

/// The same of one multi-token-prediction module but its layer: embedding, projection, head and
/// loss.
BlockTime mtp_ends_time(const Problem& problem);

/// The same of embedding and of head with loss. Their host time is not counted.
BlockTime embedding_time(const Problem& problem);
BlockTime head_time(const Problem& problem);

}  // namespace zeroplan
