// Who says so? Front door: source_of.
#include "cost_model/explain/sources.hpp"

namespace zeroplan {
std::string_view source_of(const Problem& problem, Category row) {
  switch (row) {
    case Category::parameters:
    case Category::gradients:
    case Category::master_parameters:
    case Category::optimizer_states:
      return code_of(problem).sources(problem).states;
    case Category::activations:
    case Category::temporaries:
      return code_of(problem).sources(problem).program;
    case Category::communication_buffers:
      return code_of(problem).sources(problem).buffers;
    case Category::workspace:
      return "pytorch aten/src/ATen/cuda/CublasHandlePool.cpp; TransformerEngine "
             "pytorch/cpp_extensions/gemm.py, pytorch/module/base.py";
    case Category::fragmentation:
      return "pytorch c10/cuda/CUDACachingAllocator.cpp, replayed; else the median of published "
             "runs (MooreThreads/SimuMax docs/b200 @4dcaae5)";
    case Category::communicators:
      if (!problem.cluster.overheads.communicators.empty()) {
        return "measured on this cluster where a group of so many ranks was; else NCCL 2.30 "
               "channel.cc, transport/p2p.cc, transport/net.cc: an estimate";
      }
      return "NCCL 2.30 channel.cc, transport/p2p.cc, transport/net.cc: an estimate";
    case Category::context:
      if (problem.cluster.overheads.context > Bytes{}) {
        return "measured on this cluster: context, modules and cuBLAS";
      }
      return "400-550 MiB are common on A100 and H100: an estimate";
  }
  return "";
}

std::string_view source_of_communication(const Problem& problem) {
  return code_of(problem).sources(problem).communication;
}

std::string_view source_of_flops() {
  return "Narayanan et al. 2021, eq. 3; Korthikanti et al. 2022, appendix A";
}

}  // namespace zeroplan
