#pragma once
// Bytes of the host's memory that a rank's offloaded tensors take.

#include "cost_model/states/model_states.hpp"

namespace zeroplan {

struct HostMemory {
  Bytes parameters;
  Bytes gradients;
  Bytes master_parameters;
  Bytes optimizer_states;
  Bytes activations;  // checkpoints
  Bytes staging;      // 16-bit copies on their way to the GPU and back

  Bytes total() const {
    return parameters + gradients + master_parameters + optimizer_states + activations + staging;
  }
  friend bool operator==(const HostMemory&, const HostMemory&) = default;
};

/// What rank `index` of the pipeline keeps on the host; nothing without offload. In DeepSpeed 18
/// bytes a parameter of the shard, 20 with the parameters; in Megatron-Core master parameters,
/// moments and a pinned copy of the fp32 gradients; in FSDP2 the whole shard. Pinned memory, which
/// PyTorch rounds up to a power of two, may take up to twice as much. Sources:
/// deepspeedai/DeepSpeed @edaa72212 runtime/zero/{stage_1_and_2,stage3}.py and
/// runtime/activation_checkpointing/checkpointing.py; Megatron-LM
/// core/optimizer/cpu_offloading/hybrid_optimizer.py; torch CPUOffloadPolicy; ZeRO-Offload (arXiv
/// 2101.06840), section 4.
HostMemory host_memory(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage,
                       std::int64_t index);

}  // namespace zeroplan
