#pragma once
// The buckets that Megatron-FSDP cuts into as many parts as there are ranks.
// Source: Megatron-LM @d98e8a64dd core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py,
// _get_parameter_groups and build_data_parallel_buffer_index.

#include <span>
#include <vector>

#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Which sharding group a bucket is of: the problem's, or any that is no wider, of which this is
/// the least that any has and more than each.
enum class BucketGroup { own, least_of_narrower, most_of_narrower };

/// Elements of the two buckets of a unit: experts have one of their own. Every rank's part is whole
/// rows of all matrices of the bucket.
struct BucketElements {
  std::int64_t dense = 0;
  std::int64_t expert = 0;
};
BucketElements bucket_elements(const Problem& problem,
                               std::span<const Weight> weights,
                               BucketGroup group = BucketGroup::own);

/// The buckets of what is in no layer, in order: one, which gradients of embedding and head share;
/// where gradients are asked to overlap (overlap_grad_reduce), a new one when it is large enough.
std::vector<std::vector<Weight>> buckets_of_ends(const Problem& problem,
                                                 const WeightInventory& inventory,
                                                 const Stage& stage);

}  // namespace zeroplan
