// What does a collective run beside? Front door: hidden_behind.
#include "cost_model/pipeline/overlap.hpp"

#include "cost_model/runtime/deepspeed/plan.hpp"

namespace zeroplan {
namespace {

// Transformer Engine's ring sends keys and values on a stream of their own
// (pytorch/attention/dot_product_attention/context_parallel.py); the other transports, and
// PyTorch's, wait.
Behind context(const Problem& p, const CollectiveLoad& load) {
  const bool ring = p.runtime.kind == Runtime::megatron &&
                    p.runtime.megatron.cp_comm_type == ContextTransport::p2p &&
                    load.collective == Collective::send_recv;
  return ring ? Behind::attention : Behind::nothing;
}

// Megatron-Core core/distributed/distributed_data_parallel.py: by default all after the last
// backward pass.
Behind megatron_replicas(const MegatronSettings& set, const CollectiveLoad& load) {
  if (load.during != During::step) return Behind::pass;  // Megatron-FSDP
  if (load.collective == Collective::all_gather) {
    return set.overlap_param_gather ? Behind::first_forward : Behind::nothing;
  }
  return set.overlap_grad_reduce ? Behind::last_backward : Behind::nothing;
}

// DeepSpeed: stage 3 prefetches. Stages 1 and 2 overlap where `overlap_comm` says so, the first
// with the backward pass of the last micro-batch, the only one that reduces (runtime/zero/
// stage_1_and_2.py reduce_ready_partitions_and_remove_grads @edaa72212); a pipeline, which runs
// those passes itself, with none, nor BF16_Optimizer.
Behind deepspeed_replicas(const Problem& p, const CollectiveLoad& load) {
  const DeepspeedSettings& set = p.runtime.deepspeed;
  if (p.layout.zero == ZeroStage::parameters) return Behind::pass;
  if (!set.overlap_comm || load.collective == Collective::all_gather) return Behind::nothing;
  if (load.during == During::backward) return Behind::pass;
  const bool hooked = deepspeed_optimizer(p) == DeepspeedOptimizer::stage1 && p.layout.pp == 1;
  return hooked ? Behind::last_backward : Behind::nothing;
}

Behind replicas(const Problem& p, const CollectiveLoad& load) {
  switch (p.runtime.kind) {
    case Runtime::megatron:
      return megatron_replicas(p.runtime.megatron, load);
    // torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py: prefetch on streams of their own. A
    // pipeline gathers before its first pass and reduces after the last.
    case Runtime::fsdp2:
      return load.during == During::step ? Behind::nothing : Behind::pass;
    case Runtime::ddp:
      return Behind::last_backward;  // torch/csrc/distributed/c10d/reducer.cpp
    case Runtime::deepspeed:
      return deepspeed_replicas(p, load);
    // The textbook: everything that can hide hides.
    case Runtime::zero_paper:
      return load.during == During::step ? Behind::last_backward : Behind::pass;
    // nanotron trainer.py @67c5ebb6: PyTorch's DDP, but under ZeRO, which reduces after the last
    // pass.
    case Runtime::nanotron:
      return p.layout.zero == ZeroStage::none ? Behind::last_backward : Behind::nothing;
    case Runtime::zeroplan:
      break;
  }
  return Behind::nothing;
}

}  // namespace

Behind hidden_behind(const Problem& problem, const CollectiveLoad& load) {
  if (load.asynchronous) return Behind::products;
  if (load.group.name == "cp") return context(problem, load);
  if (holds_states(load.group.name)) return replicas(problem, load);
  return Behind::nothing;
}

}  // namespace zeroplan
