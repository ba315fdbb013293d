// What do replicas send each other? Front door: replica_calls.
#include "cost_model/runtime/replica_calls.hpp"

#include <algorithm>

#include "cost_model/network/rank_groups.hpp"
#include "cost_model/states/secondary_copy.hpp"

namespace zeroplan {
namespace {

// Elements that one group divides or repeats.
struct Part {
  std::string_view group;
  std::string_view secondary;  // ranks of a second copy
  std::int64_t full = 0;       // padded only as the gradient buffer is
  std::int64_t padded = 0;     // shard x ranks: what gathers and scatters carry
  std::int64_t shard = 0;
  std::int64_t narrow = 0;  // of `padded`, gathered in one byte
};

// Whether matrices that are kept in 8 bits travel so. Of mxfp8, whose two orientations have scales
// of their own, Megatron-Core's DDP gathers 16 bits, in the buffer of the gradients, and casts what
// has come (core/distributed/param_and_grad_buffer.py _post_param_sync); Megatron-FSDP gathers
// either.
bool gathers_8_bits(const Problem& p) {
  const bool of_ddp = p.layout.zero <= ZeroStage::optimizer;
  return keeps_8_bit_matrices(p) && !(of_ddp && p.runtime.megatron.fp8_recipe == Fp8Recipe::mxfp8);
}

class Calls {
 public:
  Calls(const Problem& problem, const ReplicaRecipe& recipe) : p_(problem), recipe_(recipe) {}

  void add_weights(const StageElements& elements) {
    const std::string_view dense = p_.layout.hsdp > 0 ? "shard" : "dp";
    const bool apart = *code_of(p_).divides_states != DividesStates::never;
    const ShardWidths widths = shard_widths(p_);
    add_part(part(dense, "secondary", widths.dense, elements.dense));
    add_part(part(apart ? "expert-dp" : dense, "expert-secondary", widths.expert, elements.expert));
  }

  std::vector<Call> take() { return std::move(calls_); }

 private:
  Part part(std::string_view group,
            std::string_view secondary,
            std::int64_t ranks,
            const ElementCount& count) const {
    const std::int64_t narrow = gathers_8_bits(p_) ? count.narrow_shard * ranks : 0;
    return {group, secondary, count.full, count.shard * ranks, count.shard, narrow};
  }

  void add_part(const Part& part) {
    using enum During;
    if (recipe_.gathers_in_passes) {
      gather(part, part.group, forward);
      gather(part, secondary_ranks(p_) > 1 ? part.secondary : part.group, backward);
    }
    recipe_.four_bits ? reduce_in_four_bits(part) : reduce(part);
    if (p_.layout.hsdp > 0) {
      // A micro-batch alone is summed over replicas when it is reduced.
      const During when = micro_batches(p_) == 1 ? recipe_.reduced : step;
      const bool divides = recipe_.divides_replicas;
      add({"replica", divides ? Collective::reduce_scatter : Collective::all_reduce, when,
           Bytes{recipe_.gradient_bytes * part.shard}},
          part.full, recipe_.reduce_bucket);
      if (divides) add({"replica", Collective::all_gather, step, shard_bytes(part)}, part.full, 0);
    }
    if (recipe_.gathers_updated) gather(part, part.group, step);
  }

  Bytes shard_bytes(const Part& part) const {
    const std::int64_t narrow = part.narrow * part.shard / std::max<std::int64_t>(1, part.padded);
    return Bytes{recipe_.parameter_bytes * (part.shard - narrow) + narrow};
  }

  void gather(const Part& part, std::string_view group, During during) {
    const Bytes all{recipe_.parameter_bytes * (part.padded - part.narrow) + part.narrow};
    add({group, Collective::all_gather, during, all}, part.padded, recipe_.gather_bucket);
  }

  void reduce(const Part& part) {
    const bool scatters = recipe_.scatters;
    const Bytes all{recipe_.gradient_bytes * (scatters ? part.padded : part.full)};
    add({part.group, scatters ? Collective::reduce_scatter : Collective::all_reduce,
         recipe_.reduced, all},
        part.full, recipe_.reduce_bucket);
  }

  // ZeRO++ qgZ: each rank sends every other its part in 4 bits, first inside the node, then what
  // the node has summed between nodes (Wang et al. 2023, arXiv 2306.10209, section 3.3; DeepSpeed
  // runtime/comm/coalesced_collectives.py all_to_all_quant_reduce). Scales are left out.
  void reduce_in_four_bits(const Part& part) {
    const RankGroup all = called_group(p_, rank_groups(p_), part.group);
    const std::int64_t local = ranks_on_a_node(p_.cluster, all);
    const auto exchange = [&](Across across, std::int64_t elements) {
      Call call{part.group, Collective::all_to_all, recipe_.reduced, Bytes{ceil_div(elements, 2)}};
      call.across = across;
      add(call, elements, recipe_.reduce_bucket);
    };
    exchange(Across::node, part.padded);
    exchange(Across::nodes, part.padded / local);
  }

  // In calls that carry `bucket` of the elements at most.
  void add(Call call, std::int64_t elements, std::int64_t bucket) {
    call.times = bucket > 0 ? std::max<std::int64_t>(1, ceil_div(elements, bucket)) : 1;
    call.payload = Bytes{ceil_div(call.payload.count(), call.times)};
    if (call.payload > Bytes{}) calls_.push_back(call);
  }

  const Problem& p_;
  const ReplicaRecipe& recipe_;
  std::vector<Call> calls_;
};

}  // namespace

ReplicaRecipe zero_recipe(const Problem& problem) {
  const StateRecipe states = state_recipe(problem);
  const ZeroStage zero = problem.layout.zero;
  return {.gradient_bytes = states.gradient_bytes,
          .parameter_bytes = states.parameter_bytes,
          .scatters = zero > ZeroStage::none,
          .reduced = zero >= ZeroStage::gradients ? During::backward : During::step,
          .gathers_in_passes = zero == ZeroStage::parameters,
          .gathers_updated = zero > ZeroStage::none &&
                             zero<ZeroStage::parameters, .divides_replicas = states.outer_ranks> 1};
}

std::vector<Call> replica_calls(const Problem& problem,
                                const WeightInventory& inventory,
                                const Stage& stage,
                                const ReplicaRecipe& recipe) {
  Calls calls(problem, recipe);
  const Padding padding = state_recipe(problem).padding;
  calls.add_weights(stage_elements(problem, inventory, stage, padding));
  return calls.take();
}

void add_tied_embedding(std::vector<Call>& calls,
                        const Problem& problem,
                        const WeightInventory& inventory,
                        const Stage& stage,
                        std::int64_t gradient_bytes) {
  if (stage.embedding == stage.head || !holds_tied_copy(problem)) return;
  for (const Weight& w : inventory.tied_head) {
    calls.push_back({"embedding", Collective::all_reduce, During::step,
                     Bytes{gradient_bytes * local_weight(w, problem).elements()}});
  }
}

void add_replicated_weights(std::vector<Call>& calls,
                            const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage,
                            std::int64_t gradient_bytes) {
  if (!problem.layout.sequence_parallel) return;
  std::int64_t elements = 0;
  const auto count = [&](const std::vector<Weight>& weights, std::int64_t times) {
    for (const Weight& w : weights) {
      if (w.split == Split::replicated && !w.expert) elements += times * w.elements();
    }
  };
  const ByKind<std::int64_t> layers = layers_by_kind(problem.model, stage);
  for (const LayerKind kind : all_layer_kinds) count(inventory.layer(kind), layers[kind]);
  if (stage.head) count(inventory.head, 1);
  calls.push_back({"tp", Collective::all_reduce, During::step, Bytes{gradient_bytes * elements}});
}

void write_calls(BlockWriter& w, const std::vector<Call>& calls, During during) {
  for (const Call& call : calls) {
    if (call.during != during) continue;
    Call written = call;
    written.along_pass = during != During::step && call.times > 1;
    w.call(written);
  }
}

std::vector<Call> in_step(std::vector<Call> calls, std::int64_t micro_batches) {
  for (Call& call : calls) {
    if (call.during != During::step) call.times *= micro_batches;
  }
  return calls;
}

}  // namespace zeroplan
