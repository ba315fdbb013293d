// Which settings do layouts decide of DeepSpeed? Front doors: deepspeed_knobs,
// take_deepspeed_layout.
#include "cost_model/runtime/deepspeed/code.hpp"

#include "cost_model/runtime/deepspeed/plan.hpp"
#include "cost_model/runtime/usual.hpp"

namespace zeroplan {

// Buckets down to a tenth of DeepSpeed's default. Without one, as in stage 0 and BF16_Optimizer,
// none of these settings moves anything; overlap fills a second one in stage 2 and, without a
// pipeline, in stage 1.
std::vector<ShardingSettings> deepspeed_knobs(const GivenSettings& r, const Problem& p) {
  const DeepspeedSettings& set = r.runtime.deepspeed;
  const DeepspeedOptimizer optimizer = deepspeed_optimizer(p);
  const bool fills_buckets =
      optimizer != DeepspeedOptimizer::fused && optimizer != DeepspeedOptimizer::bf16;
  std::vector<std::int64_t> buckets{0};
  if (fills_buckets && !r.gives("reduce_bucket_size")) {
    for (const std::int64_t elements : {200'000'000, 50'000'000}) {
      if (elements < set.reduce_bucket_size) buckets.push_back(elements);
    }
  }
  std::vector<Overlap> overlaps{Overlap::as_set};
  const bool hooked = optimizer == DeepspeedOptimizer::stage2 ||
                      (optimizer == DeepspeedOptimizer::stage1 && p.layout.pp == 1);
  if (hooked && !set.overlap_comm && !r.gives("overlap_comm")) {
    overlaps.push_back(Overlap::gradients);
  }
  std::vector<ShardingSettings> list;
  for (const Overlap overlap : overlaps) {
    for (const std::int64_t bucket : buckets) {
      list.push_back({.overlap = overlap, .reduce_bucket = bucket});
    }
  }
  return list;
}

void take_deepspeed_layout(const RuntimeSpec& all, const Layout& l, RuntimeSpec& taken) {
  const DeepspeedSettings& asked = all.deepspeed;
  DeepspeedSettings& set = taken.deepspeed;
  set.overlap_comm = asked.overlap_comm || l.overlap == Overlap::gradients;
  set.reduce_bucket_size = l.reduce_bucket > 0 ? l.reduce_bucket : asked.reduce_bucket_size;
}

}  // namespace zeroplan
