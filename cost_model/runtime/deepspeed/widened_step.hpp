#pragma once
// The boundary and step of gradients that stage 1 has added up in fp32.

#include "cost_model/program/stage_program.hpp"
#include "cost_model/runtime/deepspeed/plan.hpp"

namespace zeroplan {

/// Writes what comes after the backward passes of `chunk`: gradients go into the bucket in the
/// order of the flat buffer, each bucket is reduced in 16 bits, and what of it is this rank's is
/// added to its part, with which the optimizer steps. Of the first rank, whose part is there from
/// the first bucket on. Asked of a plan with `widening`. Source: DeepSpeed 0.19.8
/// runtime/zero/stage_1_and_2.py reduce_gradients, average_tensor, allreduce_bucket,
/// _build_compact_grad_partition_buffer, step.
void write_widened_step(BlockWriter& w, const DeepspeedPlan& plan, const ChunkProgram& chunk);

}  // namespace zeroplan
