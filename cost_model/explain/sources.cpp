// Who says so? Front door: source_of.
#include "cost_model/explain/sources.hpp"

namespace zeroplan {
namespace {

// Of one runtime.
struct Sources {
  std::string_view states;   // bytes an element, and what is divided
  std::string_view program;  // what a step allocates and frees
  std::string_view buffers;  // what it gathers and reduces in
  std::string_view communication;
};

Sources megatron(const Problem& p) {
  const bool sharded = p.layout.zero >= ZeroStage::gradients;
  return {sharded ? "Megatron-LM core/distributed/fsdp/src (Megatron-FSDP)"
                  : "Megatron-LM docs/user-guide/features/dist_optimizer.md; "
                    "core/distributed/param_and_grad_buffer.py; core/optimizer/param_layout.py",
          p.runtime.megatron.local_layers()
              ? "Megatron-LM core/tensor_parallel/layers.py, core/transformer; Korthikanti et al. "
                "2022, section 4"
              : "TransformerEngine pytorch/module and attention; Megatron-LM core/transformer, "
                "core/pipeline_parallel/schedules.py; Korthikanti et al. 2022, section 4",
          "Megatron-LM core/distributed/fsdp/src; core/pipeline_parallel/p2p_communication.py",
          "Megatron-LM core/tensor_parallel/mappings.py, core/distributed; Narayanan et al. 2021, "
          "section 3.2; Korthikanti et al. 2022, section 4.2.2"};
}

Sources deepspeed(const Problem& p) {
  return {"DeepSpeed runtime/bf16_optimizer.py, runtime/zero/stage_1_and_2.py, stage3.py",
          runs_megatron_layers(p)
              ? "Megatron-DeepSpeed megatron/model; DeepSpeed runtime/pipe/engine.py"
              : "transformers models/llama/modeling_llama.py run eagerly; DeepSpeed "
                "runtime/fp16/fused_optimizer.py, runtime/zero",
          "DeepSpeed runtime/zero/stage_1_and_2.py, stage3.py, partitioned_param_coordinator.py",
          "ZeRO (arXiv 1910.02054) section 7; DeepSpeed runtime/zero, runtime/pipe/engine.py"};
}

Sources sources(const Problem& p) {
  switch (p.runtime.kind) {
    case Runtime::megatron:
      return megatron(p);
    case Runtime::fsdp2:
      return {
          "torchtitan distributed/fsdp.py; pytorch torch/distributed/fsdp/_fully_shard",
          "torchtitan models/llama3/model.py, distributed/activation_checkpoint.py, "
          "components/loss.py",
          "pytorch torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, _fsdp_param.py; "
          "torch/distributed/pipelining/stage.py",
          "pytorch torch/distributed/fsdp/_fully_shard; torchtitan distributed/parallel_dims.py"};
    case Runtime::ddp:
      return {"pytorch torch/csrc/distributed/c10d/reducer.hpp; torch/amp/autocast_mode.py",
              "transformers models/llama/modeling_llama.py run eagerly under autocast",
              "pytorch torch/csrc/distributed/c10d/reducer.cpp",
              "pytorch torch/csrc/distributed/c10d/reducer.cpp"};
    case Runtime::deepspeed:
      return deepspeed(p);
    case Runtime::nanotron:
      return {"nanotron optim/gradient_accumulator.py, optim/zero.py",
              "nanotron models/llama.py, parallel/tensor_parallel/functional.py",
              "nanotron parallel/tensor_parallel/distributed_differentiable_primitives.py",
              "nanotron parallel/tensor_parallel, parallel/pipeline_parallel, optim/zero.py"};
    case Runtime::zero_paper:
      return {"ZeRO (arXiv 1910.02054) sections 3.1 and 5: 2 + 2 + K bytes a parameter",
              "ZeRO (arXiv 1910.02054) section 3.2: 12 h b s elements a layer", "none",
              "ZeRO (arXiv 1910.02054) section 7"};
    case Runtime::zeroplan:
      break;
  }
  return {"ZeRO (arXiv 1910.02054) section 3.1, each unit padded until its parts are aligned",
          "validator/model/layer.cpp and ends.cpp, event by event",
          "validator/zero/divided_unit.cpp: a unit's gathered parameters and its bucket",
          "ZeRO (arXiv 1910.02054) section 7"};
}

}  // namespace

std::string_view source_of(const Problem& problem, Category row) {
  switch (row) {
    case Category::parameters:
    case Category::gradients:
    case Category::master_parameters:
    case Category::optimizer_states:
      return sources(problem).states;
    case Category::activations:
    case Category::temporaries:
      return sources(problem).program;
    case Category::communication_buffers:
      return sources(problem).buffers;
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
  return sources(problem).communication;
}

std::string_view source_of_flops() {
  return "Narayanan et al. 2021, eq. 3; Korthikanti et al. 2022, appendix A";
}

}  // namespace zeroplan
