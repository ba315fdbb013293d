// What do replicas send each other? Front door: add_data_parallel.
#include "cost_model/network/data_parallel.hpp"

#include <algorithm>

#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"
#include "cost_model/states/secondary_copy.hpp"

namespace zeroplan {
namespace {

// How often a step reduces gradients and gathers parameters, in which formats and portions.
struct ReplicaPlan {
  std::int64_t gradient_bytes = 0;  // an element, on the wire
  std::int64_t parameter_bytes = 0;
  std::int64_t reductions = 1;
  bool scatter = false;                 // reduce-scatter: each rank gets its part. Else all-reduce
  std::int64_t replica_reductions = 1;  // of the shards, under HSDP
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

// torch/distributed/fsdp/_fully_shard: reduction each micro-batch; torchtitan's pipeline gathers at
// the first and reduces after the last.
ReplicaPlan fsdp2_replicas(const Problem& p) {
  const std::int64_t m = micro_batches(p);
  ReplicaPlan plan{.gradient_bytes = reduced_bytes(p),
                   .parameter_bytes = p.runtime.fsdp2.mixed_precision_bytes,
                   .scatter = true};
  if (p.layout.pp > 1) {
    plan.step_gathers = 1;
    return plan;
  }
  plan.forward_gathers = m;
  if (p.layout.zero == ZeroStage::parameters) plan.backward_gathers = m;
  plan.reductions = plan.replica_reductions = m;
  plan.reduced = During::backward;
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
    case Runtime::fsdp2:
      return fsdp2_replicas(p);
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
  const bool each_time = plan.replica_reductions == plan.reductions;
  const During when = each_time ? plan.reduced : During::step;
  add_in_buckets(
      loads,
      {loads.group("replica"), Collective::all_reduce, when, plan.replica_reductions, shards},
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
  const bool in_8_bits = gathers_in_8_bits(p) || keeps_8_bit_matrices(p);
  const auto part = [&](const RankGroup& group, const ElementCount& count) {
    const std::int64_t narrow = in_8_bits ? count.hidden_shard * group.ranks : 0;
    return Part{group, count.full, count.shard * group.ranks, count.shard, narrow};
  };
  add_part(loads, p, plan, part(dense, elements.dense));
  add_part(loads, p, plan, part(expert, elements.expert));
}

// What FSDP2 divides of these weights. `of_layer`: some are gathered in 8 bits, where any are.
StageElements elements_of(const Problem& p,
                          std::span<const Weight> weights,
                          bool of_layer = false) {
  const ShardWidths widths = shard_widths(p);
  StageElements elements;
  for (const Weight& weight : weights) {
    const LocalWeight local = local_weight(weight, p);
    ElementCount& count = weight.expert ? elements.expert : elements.dense;
    const std::int64_t shard =
        first_dimension_shard(p, local, weight.expert ? widths.expert : widths.dense);
    count.full += local.elements();
    count.shard += shard;
    if (of_layer && is_linear_in_8_bits(weight)) count.hidden_shard += shard;
  }
  return elements;
}

// Each unit of FSDP2 is gathered and reduced by itself. `times`: alike units of the stage.
void add_units(LoadList& loads,
               const Problem& p,
               const StageElements& unit,
               std::int64_t times,
               bool regathered) {
  ReplicaPlan plan = fsdp2_replicas(p);
  for (std::int64_t* calls : {&plan.forward_gathers, &plan.backward_gathers, &plan.step_gathers,
                              &plan.reductions, &plan.replica_reductions}) {
    *calls *= times;
  }
  if (!regathered) plan.backward_gathers = 0;
  add_weights(loads, p, plan, unit);
}

// The unit of final norm and output layer, where the loss runs the latter part by part (torchtitan
// components/loss.py @b5bcd76c6, ChunkedLossWrapper). The norm's forward pass, the parts and the
// norm's backward pass each gather it anew: the root's hook reshards it after the first (pytorch
// #180428; torchtitan 04326fc8e), whatever the policy, since each loss ends with
// set_reshard_after_forward(True) and a reshard of its own. In a pipeline what the backward pass
// gathers stays for the next forward pass, where one follows. The last part reduces the output
// layer, in a pipeline too, before its schedule reduces the rest (torchtitan #4182: 17 reductions
// of 16 micro-batches); without one the backward pass does, and a tied weight once more as the
// embedding's. (Under 1F1B a norm's gradient of 4 h bytes travels with the next micro-batch's
// instead of once a step.)
void add_unit_in_parts(LoadList& loads,
                       const Problem& p,
                       const WeightInventory& inventory,
                       const StageElements& unit,
                       bool tied) {
  const std::int64_t m = micro_batches(p);
  const bool pipelined = p.layout.pp > 1;
  const ReplicaPlan formats{.gradient_bytes = reduced_bytes(p),
                            .parameter_bytes = p.runtime.fsdp2.mixed_precision_bytes,
                            .reductions = 0,
                            .scatter = true,
                            .replica_reductions = 0};
  ReplicaPlan gathers = formats;
  gathers.backward_gathers = head_alternates(p) ? m : 1;
  gathers.forward_gathers = pipelined ? 2 * m + 1 - gathers.backward_gathers : 2 * m;
  add_weights(loads, p, gathers, unit);
  const auto reduce = [&](const StageElements& reduced, std::int64_t times, During when) {
    ReplicaPlan plan = formats;
    plan.reductions = plan.replica_reductions = times;
    plan.reduced = when;
    add_weights(loads, p, plan, reduced);
  };
  reduce(elements_of(p, output_weights(inventory)), m, During::backward);
  reduce(tied ? unit : elements_of(p, weights_before_output(inventory)), pipelined ? 1 : m,
         pipelined ? During::step : During::backward);
}

// Units: the embedding, each layer, the head; or embedding and head as one. Unless told otherwise,
// what the backward pass reads first stays gathered: the head, and where it did the last layer.
void add_fsdp2(LoadList& loads,
               const Problem& p,
               const WeightInventory& inventory,
               const Stage& stage) {
  const bool keeps = p.runtime.fsdp2.reshard_after_forward == Reshard::by_default;
  const auto add = [&](const StageElements& unit, std::int64_t times, bool regathered) {
    add_units(loads, p, unit, times, regathered);
  };
  // In a pipeline they stand in two chunks, each with a root of its own, on whichever rank.
  const bool one_root = p.layout.pp == 1 && joins_ends(p);
  if (stage.embedding && !one_root) add(elements_of(p, inventory.embedding), 1, true);
  for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
    const std::int64_t count = layer_count(p.model, stage, kind);
    if (count == 0) continue;
    const bool last =
        one_root && keeps && keeps_last_layer(p) && kind_of(p.model, p.model.layers - 1) == kind;
    const StageElements unit = elements_of(p, inventory.layer(kind), true);
    add(unit, count - last, true);
    add(unit, last, false);
  }
  if (!stage.head) return;
  StageElements head = elements_of(p, inventory.head);
  if (one_root) {
    const StageElements words = elements_of(p, inventory.embedding);
    head.dense.full += words.dense.full;
    head.dense.shard += words.dense.shard;
  }
  if (!loss_parts(p).of_hidden()) return add(head, 1, !keeps && !one_root);
  add_unit_in_parts(loads, p, inventory, head, one_root);
}

// Each unit of zeroplan's engine travels by itself: the embedding, each layer, the head.
void add_own_units(LoadList& loads,
                   const Problem& p,
                   const WeightInventory& inventory,
                   const Stage& stage) {
  const Padding padding = state_recipe(p).padding;
  const auto carry = [&](const StageElements& elements, std::int64_t times) {
    ReplicaPlan plan = replica_plan(p);
    for (std::int64_t* calls : {&plan.forward_gathers, &plan.backward_gathers, &plan.step_gathers,
                                &plan.reductions, &plan.replica_reductions}) {
      *calls *= times;
    }
    add_weights(loads, p, plan, elements);
  };
  // Whole units, or under CB blocks of a constant size and what is left.
  const auto add = [&](const Stage& unit, std::int64_t times) {
    const StageElements whole = stage_elements(p, inventory, unit, padding);
    const std::int64_t full = whole.full();
    const std::int64_t bucket = constant_bucket(p);
    if (bucket == 0 || bucket >= full) return carry(whole, times);
    const auto block = [&](std::int64_t elements) {
      StageElements part;
      part.dense = {.full = elements, .shard = elements / shard_widths(p).dense};
      return part;
    };
    carry(block(bucket), times * (full / bucket));
    if (full % bucket > 0) carry(block(full % bucket), times);
  };
  if (stage.embedding) add({.embedding = true}, 1);
  add({.chunks = {{0, 1}}}, layer_count(stage));
  // A unit of the head alone would hold its own copy of a tied embedding, which this engine has
  // not.
  if (stage.head) add({.head = true}, 1);
}

}  // namespace

void add_data_parallel(LoadList& loads,
                       const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage) {
  if (problem.runtime.kind == Runtime::fsdp2) return add_fsdp2(loads, problem, inventory, stage);
  if (problem.runtime.kind == Runtime::zeroplan) {
    return add_own_units(loads, problem, inventory, stage);
  }
  const Padding padding = state_recipe(problem).padding;
  add_weights(loads, problem, replica_plan(problem),
              stage_elements(problem, inventory, stage, padding));
}

}  // namespace zeroplan
