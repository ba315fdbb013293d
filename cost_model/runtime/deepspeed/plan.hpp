#pragma once
// What DeepSpeed's optimizers hold besides the states, and when: buckets, owned gradients, copies
// of the boundary and the step.

#include <optional>

#include "cost_model/program/call.hpp"
#include "cost_model/runtime/deepspeed/gradients.hpp"
#include "cost_model/runtime/deepspeed/live_parameters.hpp"
#include "cost_model/runtime/deepspeed/reductions.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// What a CPU optimizer of stages 1 and 2 has on the host beside states and gradients.
struct HostBuffers {
  Bytes gradient;     // the largest one, on its way
  Bytes accumulated;  // owned gradients, where micro-batches add up
};

/// How gradients are widened to fp32: elements of the flat buffer that are this rank's, and of a
/// bucket.
struct Widening {
  static constexpr std::int64_t element = 4;  // bytes
  std::int64_t part, bucket;
};

struct DeepspeedPlan {
  DeepspeedOptimizer optimizer = DeepspeedOptimizer::stage1;
  // Gradients that are larger than a bucket, to the step: those of layers, and the head's, of a
  // rank that owns nothing of it.
  bool keeps_large = false, keeps_head = false;
  Bytes resident_gradients;  // allocated at start
  Bytes resident_bucket;     // of stage 3
  Bytes secondary;           // second shard of the parameters: ZeRO++ hpZ
  Bytes bucket;              // of stages 1 and 2, from the first gradient on
  bool owns_part = false;    // the rank's part of the flat buffer in fp32 alone
  Bytes owned;               // gradients of the tensors that touch this rank's part
  Bytes added;               // owned ones of a later micro-batch, until added to the first's
  // How much more a rank owns that gets its own when all others are reduced; of a later
  // micro-batch.
  Bytes owned_late, added_late;
  // Where `owned` gets its room: once the first bucket that is full has been reduced.
  enum class Owned { in_head, in_layers, in_embedding, at_end } owned_from = Owned::in_head;
  Bytes copy;  // of a bucket, to reduce it
  // Copies of a bucket in stages 2 and 3: while a gradient of the head finds no room, while the
  // embedding's does not, and when all are done; and the reductions in layers, with theirs.
  Bytes copy_in_head, copy_beside_last, copy_at_end;
  std::vector<Reduction> reductions;
  // The first of the reductions in layers, where owned gradients get room then, and of the others
  // that beside which most lives: deepspeed_stage chooses.
  std::optional<Reduction> first, highest;
  // Gathered parameters around the turn, what is there besides in the forward passes of the head
  // and of each layer, and the last layer in which most lives with it.
  Bytes live, ahead_in_head, ahead_in_layers;
  std::vector<std::int64_t> gathered;  // in layers, elements
  std::int64_t ahead_to = 0;
  Bytes gone, more;          // of `live` what has gone, and what is there besides, at `highest`
  Bytes live_at_end;         // beside the embedding's gradient
  Bytes part_widened;        // of what is reduced, on its way to fp32 gradients
  Bytes boundary;            // once all micro-batches are done
  Bytes taken_in;            // of stage 1's gradients, by its bucket, before those have a copy
  bool copies_owned = true;  // at the boundary of stage 1, beside all gradients; else they stay
  Bytes flattened, widened;  // in the step: one 16-bit tensor of a part, and its fp32 form
  Bytes check;               // overflow check and norm
  std::optional<Widening> widening;  // of each gradient as soon as it is made: they add up
  Bytes gathered_on_save;            // whole weights of a module, one after the other
  Bytes to_host;                     // of gradients that a CPU optimizer takes: while they pass
  HostBuffers on_host;               // of a CPU optimizer; the gradient's is on the GPU too
  std::vector<Call> calls;           // deepspeed_calls

  /// Whether each weight's gradient stays from the first backward pass to the step; other optimizer
  /// classes hold theirs in buffers of their own.
  bool keeps_gradients() const {
    return optimizer == DeepspeedOptimizer::fused || optimizer == DeepspeedOptimizer::stage1;
  }

  /// The copy of a bucket is made when gradients are reduced: where they are kept, in the step.
  Bytes copy_in_backward() const { return keeps_gradients() ? Bytes{} : copy; }
  Bytes copy_in_step() const { return keeps_gradients() ? copy : Bytes{}; }
  Bytes to_host_in_backward() const { return keeps_gradients() ? Bytes{} : to_host; }
  Bytes to_host_in_step() const { return keeps_gradients() ? to_host : Bytes{}; }
};

/// What a CPU optimizer has on the host: nothing where the step is the GPU's, or of stage 3.
/// `sizes`: tensor_sizes.
HostBuffers buffers_on_host(const Problem& problem, const std::vector<std::int64_t>& sizes);

/// What replicas send, and the two that hold a tied embedding: of passes once a micro-batch. Stage
/// 0 all-reduces 500 million elements at a time (runtime/engine.py allreduce_bucket),
/// BF16_Optimizer whole gradients before each rank takes its part; sequence parallelism makes it
/// reduce in fp32. MiCS reduces over replicas at the accumulation boundary (runtime/zero/mics.py);
/// a tied embedding's gradient is summed beside the 16-bit ones (runtime/pipe/module.py
/// allreduce_tied_weight_gradients). `live`: live_parameters. Sources:
/// runtime/zero/{stage_1_and_2,stage3,partitioned_param_coordinator}.py @edaa72212.
std::vector<Call> deepspeed_calls(const Problem& problem,
                                  const WeightInventory& inventory,
                                  const Stage& stage,
                                  const LiveParameters& live);

/// What DeepSpeed's optimizer holds on a stage besides the states. Sources: deepspeedai/DeepSpeed
/// @edaa72212 runtime/fp16/fused_optimizer.py, runtime/bf16_optimizer.py,
/// runtime/zero/{stage_1_and_2,stage3,partitioned_param_coordinator}.py.
DeepspeedPlan deepspeed_plan(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage);

}  // namespace zeroplan
