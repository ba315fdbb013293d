#pragma once
// A rank of zeroplan's own engine (validator/) as a step program.

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// Units, each in one buffer: the embedding, each layer, the head. Under ZeRO 2 and 3 a bucket
/// takes the gradients of a unit for its backward pass; under 3 its parameters are gathered for
/// each pass. Full recompute runs a layer forward again, output included. Received tensors have
/// buffers of their own, one input for each micro-batch in flight. What the engine allocates is in
/// validator/model/; tests/validator/prediction_test.cpp holds the two together, byte for byte.
StageProgram zeroplan_stage(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage);

}  // namespace zeroplan
