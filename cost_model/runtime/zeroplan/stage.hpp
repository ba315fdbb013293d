#pragma once
// A rank of zeroplan's own engine (validator/) as a step program.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// Units, each in one buffer: the embedding, each layer, the head. Under ZeRO 2 and 3 a bucket
/// takes the gradients of a unit for its backward pass; under 3 its parameters are gathered for
/// each pass. Full recompute runs a layer forward again, output included. Received tensors have
/// buffers of their own, one input for each micro-batch in flight. Settings (ZeroplanSettings):
/// prefetch gathers the next unit too; Pa and MD keep copies of checkpoints, so that one received
/// input is enough, MD in buffers that stay, as it does a bucket for the largest unit; CB has a
/// bucket of its own size, into which gradients are copied parameter by parameter. What the engine
/// allocates is in validator/model/ and validator/zero/; tests/validator/prediction_test.cpp holds
/// the two together, byte for byte.
StageProgram zeroplan_stage(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage);

/// What a block sends by itself (question/runtime_code.hpp).
Block zeroplan_block(const Problem& problem,
                     const WeightInventory& inventory,
                     BlockKind block,
                     LayerKind layer,
                     RepeatSet policy);

}  // namespace zeroplan
