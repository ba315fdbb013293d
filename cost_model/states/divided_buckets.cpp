// Which weights travel together under Megatron-FSDP? Front doors: bucket_elements, buckets_of_ends.
#include "cost_model/states/divided_buckets.hpp"

#include <numeric>

namespace zeroplan {

BucketElements bucket_elements(const Problem& problem,
                               std::span<const Weight> weights,
                               BucketGroup group) {
  struct Bucket {
    std::int64_t elements = 0;
    std::int64_t rows = 1;  // the least that is whole rows of every matrix
  } dense, expert;
  for (const Weight& w : weights) {
    const LocalWeight local = local_weight(w, problem);
    Bucket& bucket = w.expert ? expert : dense;
    bucket.elements += local.elements();
    bucket.rows = std::lcm(bucket.rows, local.columns);
  }
  const auto padded = [&](const Bucket& bucket, std::int64_t width) {
    if (bucket.elements == 0) return std::int64_t{0};
    switch (group) {
      case BucketGroup::own:
        return round_up(bucket.elements, width * bucket.rows);
      case BucketGroup::least_of_narrower:
        return round_up(bucket.elements, bucket.rows);
      case BucketGroup::most_of_narrower:
        return bucket.elements + width * bucket.rows;
    }
    return bucket.elements;
  };
  const ShardWidths widths = shard_widths(problem);
  const std::int64_t outer = outer_ranks(problem);
  return {padded(dense, outer * widths.dense), padded(expert, outer * widths.expert)};
}

std::vector<std::vector<Weight>> buckets_of_ends(const Problem& problem,
                                                 const WeightInventory& inventory,
                                                 const Stage& stage) {
  const MegatronSettings& set = problem.runtime.megatron;
  const std::int64_t enough = set.bucket_elements(problem.layout);
  std::vector<std::vector<Weight>> buckets(1);
  const auto add = [&](const std::vector<Weight>& weights) {
    for (const Weight& w : weights) {
      buckets.back().push_back(w);
      if (!set.overlap_grad_reduce) continue;
      if (local_elements(buckets.back(), problem) >= enough) buckets.emplace_back();
    }
  };
  if (stage.embedding) add(inventory.embedding);
  const std::int64_t modules = stage.head ? held_mtp_modules(problem) : 0;
  for (std::int64_t i = 0; i < modules; ++i) add(inventory.mtp_ends);
  if (stage.head) add(inventory.head);
  if (buckets.back().empty()) buckets.pop_back();
  return buckets;
}

}  // namespace zeroplan
