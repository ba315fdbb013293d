// What do replicas send each other? Front door: add_data_parallel.
#include "cost_model/network/data_parallel.hpp"

#include <algorithm>

#include "cost_model/network/program_calls.hpp"
#include "cost_model/states/secondary_copy.hpp"

namespace zeroplan {
namespace {

// How often a step reduces gradients and gathers parameters, in which formats and portions.
struct ReplicaPlan {
  std::int64_t gradient_bytes = 0;  // an element, on the wire
  std::int64_t parameter_bytes = 0;
  std::int64_t reductions = 1;
  bool scatter = false;  // reduce-scatter: each rank gets its part. Else all-reduce
  std::int64_t forward_gathers = 0;
  std::int64_t backward_gathers = 0;
  std::int64_t step_gathers = 0;
  bool four_bits = false;  // gradients, by two all-to-alls
  During reduced = During::step;
  // Elements a call carries at most; 0: all in one.
  std::int64_t reduce_bucket = 0;
  std::int64_t gather_bucket = 0;
};

// Elements that are divided over one group.
struct Part {
  RankGroup group;
  std::int64_t full = 0;    // padded only as the gradient buffer is
  std::int64_t padded = 0;  // shard x ranks: what gathers and scatters carry
  std::int64_t shard = 0;
  std::int64_t narrow = 0;  // of `padded`, gathered in one byte
};

// 0: all-reduce. 1: reduce-scatter, then all-gather of the updated parameters. 2: the same, but
// only a part of the sum is kept, so each micro-batch is reduced. 3: parameters are gathered for
// each pass of each micro-batch instead.
ReplicaPlan zero_plan(ReplicaPlan plan, ZeroStage zero, std::int64_t m) {
  if (zero == ZeroStage::none) return plan;
  plan.scatter = true;
  if (zero >= ZeroStage::gradients) {
    plan.reductions = m;
    plan.reduced = During::backward;
  }
  if (zero == ZeroStage::parameters) {
    plan.forward_gathers = plan.backward_gathers = m;
  } else {
    plan.step_gathers = 1;
  }
  return plan;
}

// DeepSpeed @edaa72212 runtime/engine.py allreduce_bucket (500 million elements at a time),
// runtime/zero/stage_1_and_2.py, stage3.py, partitioned_param_coordinator.py; mics.py reduces over
// replicas at the accumulation boundary. Sequence parallelism makes it reduce in fp32.
ReplicaPlan deepspeed_replicas(const Problem& p, ReplicaPlan plan) {
  const DeepspeedSettings& set = p.runtime.deepspeed;
  const std::int64_t compute = plan.parameter_bytes;
  plan.gradient_bytes = p.layout.cp > 1 ? 4 : compute;
  plan = zero_plan(plan, p.layout.zero, micro_batches(p));
  constexpr std::int64_t engine_bucket = 500'000'000;
  plan.reduce_bucket = p.layout.zero == ZeroStage::none ? engine_bucket : set.reduce_bucket_size;
  if (p.layout.zero == ZeroStage::parameters) {
    plan.gather_bucket = set.stage3_prefetch_bucket_size;
    if (set.quantized_weights) plan.parameter_bytes = 1;
    // On one node it takes the usual reduce-scatter instead (stage3.py __avg_scatter_grads).
    const std::int64_t nodes = world_size(p.layout) / p.cluster.gpus_per_node;
    plan.four_bits = set.quantized_gradients && nodes > 1;
  }
  // BF16_Optimizer sums whole gradients before each rank takes its part.
  if (p.layout.zero == ZeroStage::optimizer && set.fp32_grad_accumulation) plan.scatter = false;
  return plan;
}

// PyTorch's default (torch/csrc/distributed/c10d/reducer.hpp), which nanotron keeps.
constexpr std::int64_t ddp_bucket = 25 * mebi;

// nanotron @67c5ebb6: fp32 sums. Without ZeRO in DDP's buckets of 25 MiB of parameters
// (optim/gradient_accumulator.py get_fp32_accum_hook, config.py ddp_bucket_cap_mb); with ZeRO whole
// and on every rank, "too memory hungry" to scatter (trainer.py), before each gathers what the
// others updated (optim/zero.py).
ReplicaPlan nanotron_replicas(const Problem& p, ReplicaPlan plan) {
  if (p.layout.zero == ZeroStage::none) {
    plan.reduce_bucket = ddp_bucket / plan.parameter_bytes;
  } else {
    plan.step_gathers = 1;
  }
  return plan;
}

ReplicaPlan replica_plan(const Problem& p) {
  const StateRecipe recipe = state_recipe(p);
  const ReplicaPlan formats{.gradient_bytes = recipe.gradient_bytes,
                            .parameter_bytes = recipe.parameter_bytes};
  switch (p.runtime.kind) {
    case Runtime::deepspeed:
      return deepspeed_replicas(p, formats);
    case Runtime::ddp: {
      // The first bucket, of 1 MiB, is not told apart. Accumulation under no_sync, as its
      // documentation has it.
      ReplicaPlan plan = formats;
      plan.reduce_bucket = ddp_bucket / plan.gradient_bytes;
      return plan;
    }
    case Runtime::nanotron:
      return nanotron_replicas(p, formats);
    // Megatron-Core core/distributed/param_and_grad_buffer.py: main gradients, fp32 unless
    // grad_reduce_in_bf16, in one bucket without overlap; Megatron-FSDP's are in the parameters'
    // format, reduced each micro-batch (fsdp/src/megatron_fsdp/megatron_fsdp.py).
    case Runtime::megatron:
    case Runtime::zero_paper:
    case Runtime::fsdp2:  // these two programs have them
    case Runtime::zeroplan:
      break;
  }
  return zero_plan(formats, p.layout.zero, micro_batches(p));
}

void add_in_buckets(LoadList& loads, CollectiveLoad load, std::int64_t count, std::int64_t bucket) {
  const std::int64_t buckets = bucket > 0 ? std::max<std::int64_t>(1, ceil_div(count, bucket)) : 1;
  load.calls *= buckets;
  load.payload = Bytes{ceil_div(load.payload.count(), buckets)};
  loads.add(load);
}

// ZeRO++ hpZ keeps a second copy divided over neighbours, and gathers it for the backward pass.
RankGroup backward_group(const Problem& p, const Part& part) {
  const std::int64_t secondary = secondary_ranks(p);
  return secondary > 1 ? RankGroup{"secondary", secondary, part.group.stride} : part.group;
}

void add_reduction(LoadList& loads, const ReplicaPlan& plan, const Part& part) {
  const Collective reduction = plan.scatter ? Collective::reduce_scatter : Collective::all_reduce;
  const Bytes reduced{plan.gradient_bytes * (plan.scatter ? part.padded : part.full)};
  add_in_buckets(loads, {part.group, reduction, plan.reduced, plan.reductions, reduced}, part.full,
                 plan.reduce_bucket);
}

// ZeRO++ qgZ: each rank sends every other its part in 4 bits, first inside the node, then what the
// node has summed between nodes (Wang et al. 2023, arXiv 2306.10209, section 3.3; DeepSpeed
// runtime/comm/coalesced_collectives.py all_to_all_quant_reduce). Scales are left out.
void add_four_bit_reduction(LoadList& loads,
                            const Problem& p,
                            const ReplicaPlan& plan,
                            const Part& part) {
  const RankGroup& all = part.group;
  const std::int64_t fit = std::max<std::int64_t>(1, p.cluster.gpus_per_node / all.stride);
  const std::int64_t local = all.ranks % fit == 0 ? fit : all.ranks;
  const auto exchange = [&](const RankGroup& group, std::int64_t elements) {
    add_in_buckets(loads,
                   {group, Collective::all_to_all, plan.reduced, plan.reductions,
                    Bytes{ceil_div(elements, 2)}},
                   elements, plan.reduce_bucket);
  };
  exchange({all.name, local, all.stride}, part.padded);
  exchange({all.name, all.ranks / local, all.stride * local}, part.padded / local);
}

void add_part(LoadList& loads, const Problem& p, const ReplicaPlan& plan, const Part& part) {
  const Bytes gathered{plan.parameter_bytes * (part.padded - part.narrow) + part.narrow};
  const auto gather = [&](const RankGroup& group, During during, std::int64_t calls) {
    add_in_buckets(loads, {group, Collective::all_gather, during, calls, gathered}, part.padded,
                   plan.gather_bucket);
  };
  gather(part.group, During::forward, plan.forward_gathers);
  gather(backward_group(p, part), During::backward, plan.backward_gathers);
  if (plan.four_bits) {
    add_four_bit_reduction(loads, p, plan, part);
  } else {
    add_reduction(loads, plan, part);
  }
  const Bytes shards{plan.gradient_bytes * part.shard};
  const During when = plan.reductions == 1 ? plan.reduced : During::step;
  add_in_buckets(loads, {loads.group("replica"), Collective::all_reduce, when, 1, shards},
                 part.full, plan.reduce_bucket);
  gather(part.group, During::step, plan.step_gathers);
}

// Dense weights and experts have groups of their own, except in DDP.
void add_weights(LoadList& loads,
                 const Problem& p,
                 const ReplicaPlan& plan,
                 const StageElements& elements) {
  const RankGroup dense = loads.group(p.layout.hsdp > 0 ? "shard" : "dp");
  const RankGroup expert = p.runtime.kind == Runtime::ddp ? dense : loads.group("expert-dp");
  const bool in_8_bits = keeps_8_bit_matrices(p);
  const auto part = [&](const RankGroup& group, const ElementCount& count) {
    const std::int64_t narrow = in_8_bits ? count.hidden_shard * group.ranks : 0;
    return Part{group, count.full, count.shard * group.ranks, count.shard, narrow};
  };
  add_part(loads, p, plan, part(dense, elements.dense));
  add_part(loads, p, plan, part(expert, elements.expert));
}

}  // namespace

void add_data_parallel(LoadList& loads,
                       const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage) {
  if (has_calls(problem)) {
    return loads.add_calls(calls_of(step_calls(problem, inventory, stage), true));
  }
  const Padding padding = state_recipe(problem).padding;
  add_weights(loads, problem, replica_plan(problem),
              stage_elements(problem, inventory, stage, padding));
}

}  // namespace zeroplan
