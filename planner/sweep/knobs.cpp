// Which settings of its exchange does a runtime leave open? Front door: knobs.
#include "planner/sweep/knobs.hpp"

#include "cost_model/runtime/deepspeed/plan.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {
namespace {

// What a runtime's settings say of how it exchanges, as one number.
struct Knobs {
  Overlap overlap = Overlap::as_set;
  bool reshards_all = false;
  std::int64_t reduce_bucket = 0;
};
constexpr std::int64_t overlap_unit = 4;
constexpr std::int64_t bucket_unit = 2 * overlap_unit;

std::int64_t number_of(const Knobs& k) {
  return static_cast<std::int64_t>(k.overlap) + overlap_unit * k.reshards_all +
         bucket_unit * k.reduce_bucket;
}

// Megatron-FSDP always overlaps. What is given stays; parameters overlap only where gradients do,
// so who gives the former leaves the latter open.
Values megatron_knobs(const Request& r, const Problem& p) {
  using enum Overlap;
  const MegatronSettings& set = r.runtime.megatron;
  const bool fsdp = p.layout.zero > ZeroStage::optimizer;
  const bool with_gradients = r.gives("overlap_grad_reduce") || set.overlap_grad_reduce;
  const bool with_parameters = r.gives("overlap_param_gather") || set.overlap_param_gather;
  Values open;
  const auto add = [&](Overlap overlap) { open.push_back(number_of({.overlap = overlap})); };
  if (!fsdp && !with_parameters && (!with_gradients || set.overlap_grad_reduce)) add(parameters);
  if (!fsdp && !with_gradients) add(gradients);
  add(as_set);
  return open;
}

// Buckets down to a tenth of DeepSpeed's default. Without one, as in stage 0 and BF16_Optimizer,
// none of these settings moves anything; overlap fills a second one in stage 2 and, without a
// pipeline, in stage 1.
Values deepspeed_knobs(const Request& r, const Problem& p) {
  const DeepspeedSettings& set = r.runtime.deepspeed;
  const DeepspeedOptimizer optimizer = deepspeed_optimizer(p);
  const bool fills_buckets =
      optimizer != DeepspeedOptimizer::fused && optimizer != DeepspeedOptimizer::bf16;
  Values buckets{0};
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
  Values list;
  for (const Overlap overlap : overlaps) {
    for (const std::int64_t bucket : buckets) {
      list.push_back(number_of({.overlap = overlap, .reduce_bucket = bucket}));
    }
  }
  return list;
}

// What stays gathered from forward to backward pass by default may be resharded too: the head and,
// before torchtitan had it in a unit of its own, the last layer.
Values fsdp2_knobs(const Request& r, const Problem& p) {
  const bool keeps = keeps_last_layer(p) || !joins_ends(p);
  const bool open = p.layout.zero == ZeroStage::parameters && p.layout.pp == 1 && keeps &&
                    r.runtime.fsdp2.reshard_after_forward == Reshard::by_default &&
                    !r.gives("parallelism.fsdp_reshard_after_forward");
  return open ? Values{0, number_of({.reshards_all = true})} : Values{0};
}

}  // namespace

void set_knobs(Layout& layout, std::int64_t number) {
  layout.overlap = static_cast<Overlap>(number % overlap_unit);
  layout.reshards_all = number / overlap_unit % 2 != 0;
  layout.reduce_bucket = number / bucket_unit;
}

Values knobs(const Request& r, const Problem& p) {
  switch (r.runtime.kind) {
    case Runtime::megatron:
      return megatron_knobs(r, p);
    case Runtime::deepspeed:
      return deepspeed_knobs(r, p);
    case Runtime::fsdp2:
      return fsdp2_knobs(r, p);
    default:
      return {0};
  }
}

}  // namespace zeroplan
