#pragma once
// First estimate of what a runtime allocates around the layers: gathered parameters, reduction
// buckets, library workspaces.

#include <string_view>
#include <vector>

#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Gathered parameters and reduction buckets that Megatron-FSDP holds through the step; what other
/// runtimes hold is in their programs.
/// Sources: Megatron-FSDP core/distributed/fsdp/src; torch/distributed/pipelining/stage.py.
Bytes communication_buffers(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage);

/// Workspaces that stay for the whole run: cuBLAS and Transformer Engine scratch space, and
/// Transformer Engine's placeholder weight gradients, one a distinct weight shape, which exist when
/// weight gradients are accumulated inside the GEMM (pytorch/module/base.py get_dummy_wgrad).
struct Workspace {
  std::string_view name;
  Bytes bytes;
};
std::vector<Workspace> workspaces(const Problem& problem,
                                  const WeightInventory& inventory,
                                  const Stage& stage);

/// PyTorch's workspaces for cuBLAS: one a thread that runs GEMMs, forward and autograd
/// (aten/src/ATen/cuda/CublasHandlePool.cpp).
Workspace cublas_workspace(const Problem& problem);

/// No buffers through the step, and cuBLAS's workspace alone, for runtimes that have no more.
Bytes no_buffers(const Problem& problem, const WeightInventory& inventory, const Stage& stage);
std::vector<Workspace> cublas_alone(const Problem& problem,
                                    const WeightInventory& inventory,
                                    const Stage& stage);

/// The bytes of all workspaces together.
Bytes workspace(const Problem& problem, const WeightInventory& inventory, const Stage& stage);

/// The bytes of workspaces that cuBLAS is given by PyTorch's C++, which no tensor of Python tells;
/// Transformer Engine's own are tensors (pytorch/cpp_extensions/gemm.py).
Bytes unseen_workspace(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage);

}  // namespace zeroplan
