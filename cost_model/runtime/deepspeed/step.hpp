#pragma once
// What DeepSpeed's optimizers add to any rank: states, and the end of the step.

#include "cost_model/program/stage_program.hpp"
#include "cost_model/runtime/deepspeed/plan.hpp"

namespace zeroplan {

/// A gradient that autograd made and the optimizer has not taken yet.
inline constexpr Carried deepspeed_gradient{"gradient", Category::gradients};
/// The output layer's gradient of a weight that the embedding shares, for whose gradient it waits.
inline constexpr Carried deepspeed_half_gradient{"gradient of the output layer",
                                                 Category::gradients};
inline constexpr Carried deepspeed_owned{"owned gradients", Category::gradients};
/// Owned gradients of a later micro-batch, beside the first one's until the backward pass is done.
inline constexpr Carried deepspeed_added{"owned gradients to add", Category::gradients};
inline constexpr Carried deepspeed_bucket{"reduction bucket", Category::communication_buffers};
inline constexpr Carried deepspeed_live{"gathered parameters", Category::communication_buffers};

/// What stage 3 gathers for a micro-batch.
void open_forward(BlockWriter& w, const DeepspeedPlan& plan);
/// What of the parameters that stage 3 gathers goes when the head, the last module of the forward
/// pass, has its own.
void open_head(BlockWriter& w, const DeepspeedPlan& plan);

/// What the first gradient of a backward pass makes, what its reduction does, or that of the
/// embedding's on a rank that owns little before it, what that of a block's takes, and what ends
/// with the pass. What the pass gathers and reduces goes on beside it from its beginning.
void open_backward(BlockWriter& w, const DeepspeedPlan& plan, bool first_micro_batch);
void own_gradients(BlockWriter& w, const DeepspeedPlan& plan, bool first_micro_batch);
void own_late_gradients(BlockWriter& w, const DeepspeedPlan& plan, bool first_micro_batch);
void reduce_gradients(BlockWriter& w, const DeepspeedPlan& plan, Bytes copied);
void close_backward(BlockWriter& w, const DeepspeedPlan& plan, bool first_micro_batch);
/// What was gathered for the turn of a micro-batch; only the embedding needs its own once more.
void release_gathered(BlockWriter& w, const DeepspeedPlan& plan);

/// Boundary and optimizer step, once the backward passes of `chunk` are done.
Block deepspeed_step(const DeepspeedPlan& plan, const ChunkProgram& chunk);

/// What is resident of states and buffers.
void add_deepspeed_states(StageProgram& program,
                          const DeepspeedPlan& plan,
                          const ModelStates& states);

}  // namespace zeroplan
