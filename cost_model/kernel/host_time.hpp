#pragma once
// How long the host takes to launch a layer's kernels: the floor of a layer's time, however fast
// the GPU.

#include <algorithm>

#include "cost_model/kernel/module_time.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Seconds of the Python and C++ that launch one layer for one micro-batch.
struct HostTime {
  double forward = 0;
  double backward = 0;  // with the launches that full recompute repeats

  HostTime& operator+=(const HostTime& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
  /// To at least so many seconds each.
  void raise(double seconds) {
    forward = std::max(forward, seconds);
    backward = std::max(backward, seconds);
  }
};

/// Measured for Megatron only, by fits of step times: with its own layers on A100 nodes of 2023
/// (vTrain's single-node runs), with Transformer Engine on B200 nodes (SimuMax's runs). nanotron,
/// whose layers launch about as many kernels and whose parallel linears are adapted from Megatron's
/// (parallel/tensor_parallel/functional.py), is taken to need what Megatron's own do. The other
/// runtimes have 0: in their published runs the GPU was the slower one.
HostTime layer_host_time(const Problem& problem, LayerKind kind);

/// Seconds for which it launches nothing, as it waits for one of the layer's kernels. `modules`:
/// those of the layer, or of a part of it.
HostTime layer_host_wait(const Problem& problem, LayerKind kind, const ModuleTimes& modules);

/// Seconds for which the GPU waits while the host launches the products of a layer's experts one by
/// one, whose tokens it has just been told. 0 where a graph or a fused kernel holds them, or their
/// number is known before. `routed`: the modules of that part of the layer, without this gap.
double expert_launch_gap(const Problem& problem, const ModuleTimes& routed);

}  // namespace zeroplan
