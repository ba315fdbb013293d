#pragma once
// What DeepSpeed's optimizers add to any rank: states, and the end of the step.

#include "cost_model/program/stage_program.hpp"
#include "cost_model/runtime/deepspeed/plan.hpp"

namespace zeroplan {

/// A gradient that autograd made and the optimizer has not taken yet.
inline constexpr Carried deepspeed_gradient{"gradient", Category::gradients};
inline constexpr Carried deepspeed_owned{"owned gradients", Category::gradients};
/// Of a later micro-batch: beside the first one's until the backward pass is done.
inline constexpr Carried deepspeed_added{"owned gradients to add", Category::gradients};
inline constexpr Carried deepspeed_bucket{"reduction bucket", Category::communication_buffers};
inline constexpr Carried deepspeed_live{"gathered parameters", Category::communication_buffers};

/// What stage 3 gathers for a micro-batch.
void open_forward(BlockWriter& w, const DeepspeedPlan& plan);
/// What of it goes when the head, the last module of the forward pass, has its own.
void open_head(BlockWriter& w, const DeepspeedPlan& plan);

/// What the first gradient of a backward pass makes, what the reduction of a block's takes, and
/// what ends with the pass. What the pass gathers and reduces goes on beside it from its beginning.
void open_backward(BlockWriter& w, const DeepspeedPlan& plan, bool first_micro_batch);
void reduce_gradients(BlockWriter& w, const DeepspeedPlan& plan);
void close_backward(BlockWriter& w, const DeepspeedPlan& plan, bool first_micro_batch);

/// Boundary and optimizer step, once the backward passes of `chunk` are done.
Block deepspeed_step(const DeepspeedPlan& plan, const ChunkProgram& chunk);

/// What is resident of states and buffers.
void add_deepspeed_states(StageProgram& program,
                          const DeepspeedPlan& plan,
                          const ModelStates& states);

}  // namespace zeroplan
