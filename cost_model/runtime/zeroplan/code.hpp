#pragma once
// zeroplan's own engine (validator/), which runs the ZeRO paper's algorithm on real ranks.
//
// Parameters, gradients and moments of a unit (word embedding, positions, each layer, the head; a
// tied head's copy on a stage of its own) lie in one buffer each, padded until every rank's part is
// aligned, bf16 beside an fp32 master copy. ZeRO 0 all-reduces the whole gradients after the last
// micro-batch; 1 scatters them, updates a part and gathers parameters; 2 scatters each unit's as
// its backward pass ends, through a bucket, beside the next unit's pass where overlap_comm is set;
// 3 also gathers each unit for each pass and frees it after it, the next one ahead where it
// prefetches. Pa divides checkpoints over tensor parallelism, C_B gives the bucket a constant size,
// M_D makes checkpoints and buckets once. Tensors are counted by the ledger as they are allocated.

#include "cost_model/legality/legality.hpp"

namespace zeroplan {

extern const RuntimeCode zeroplan_code;
extern const RuleBook zeroplan_rules;

}  // namespace zeroplan
