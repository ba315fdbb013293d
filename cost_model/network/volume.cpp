// What does a step send? Front door: step_collectives.
#include "cost_model/network/volume.hpp"

#include <iterator>

#include "cost_model/network/data_parallel.hpp"
#include "cost_model/network/layer_collectives.hpp"
#include "cost_model/rank/token_shape.hpp"

namespace zeroplan {
namespace {

// Chunks that end where the rank's next one begins: the turn of ZB-V.
std::int64_t turns(const Problem& p, const Stage& stage) {
  if (p.layout.schedule != Schedule::zb_v) return 0;
  std::int64_t count = 0;
  for (std::size_t i = 1; i < stage.chunks.size(); ++i) {
    count += stage.chunks[i - 1].last == stage.chunks[i].first;
  }
  return count;
}

// Each chunk of each micro-batch sends its result to the next chunk, and its gradient to the one
// before. Narayanan et al. 2021, section 2.2: v times as much with v chunks a rank; Megatron-Core
// core/pipeline_parallel/p2p_communication.py.
void add_pipeline(LoadList& loads, const Problem& p, const Stage& stage) {
  const Bytes message = pipeline_message(p);
  const std::int64_t m = forward_passes(p);
  const std::int64_t chunks = std::ssize(stage.chunks) - turns(p, stage);
  const RankGroup pp = loads.group("pp");
  const RankGroup tp = loads.group("tp");
  const auto both = [&](const RankGroup& group, Collective what, std::int64_t first,
                        std::int64_t last, Bytes payload) {
    loads.add({group, what, During::forward, m * (chunks - first), payload});
    loads.add({group, what, During::backward, m * (chunks - last), payload});
  };
  both(pp, Collective::send_recv, stage.head, stage.embedding, message);
  if (p.layout.pp > 1 && scatters_messages(p)) {
    both(tp, Collective::all_gather, stage.embedding, stage.head, tp.ranks * message);
  }
}

// First and last stage each hold the tied word embedding and add up its gradient (Megatron-Core
// core/distributed/finalize_model_grads.py; DeepSpeed runtime/pipe/module.py
// allreduce_tied_weight_gradients; nanotron parallel/tied_parameters.py).
void add_tied_embedding(LoadList& loads,
                        const Problem& p,
                        const WeightInventory& inventory,
                        const Stage& stage) {
  const Layout& l = p.layout;
  if (stage.embedding == stage.head || !holds_tied_copy(p)) return;
  const std::int64_t stage_ranks = l.tp * l.cp * l.dp;
  const StateRecipe recipe = state_recipe(p);
  const bool sums_apart = p.runtime.kind == Runtime::deepspeed;  // beside the 16-bit gradients
  const std::int64_t bytes = sums_apart ? recipe.parameter_bytes : recipe.gradient_bytes;
  for (const Weight& w : inventory.tied_head) {
    loads.add({{"embedding", 2, (l.pp - 1) * stage_ranks, stage_ranks},
               Collective::all_reduce,
               During::step,
               1,
               Bytes{bytes * local_weight(w, p).elements()}});
  }
}

// Weights that each rank of tensor parallelism holds whole saw only its rows of the tokens under
// sequence parallelism (finalize_model_grads.py; nanotron
// parallel/tensor_parallel/functional.py with its tied norms).
void add_replicated_weights(LoadList& loads,
                            const Problem& p,
                            const WeightInventory& inventory,
                            const Stage& stage) {
  const bool own_sums = p.runtime.kind == Runtime::megatron || p.runtime.kind == Runtime::nanotron;
  if (!p.layout.sequence_parallel || !own_sums) return;
  std::int64_t elements = 0;
  const auto count = [&](const std::vector<Weight>& weights, std::int64_t times) {
    for (const Weight& w : weights) {
      if (w.split == Split::replicated && !w.expert) elements += times * w.elements();
    }
  };
  for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
    count(inventory.layer(kind), layer_count(p.model, stage, kind));
  }
  if (stage.head) count(inventory.head, 1);
  loads.add({loads.group("tp"), Collective::all_reduce, During::step, 1,
             Bytes{state_recipe(p).gradient_bytes * elements}});
}

}  // namespace

Bytes sent_bytes_per_step(const CollectiveLoad& load) {
  return load.calls * sent_bytes_per_rank(load.collective, load.group.ranks, load.payload);
}

bool scatters_messages(const Problem& problem) {
  return problem.runtime.kind == Runtime::megatron &&
         problem.runtime.megatron.scatter_gather_tensors_in_pipeline && problem.layout.tp > 1 &&
         !problem.layout.sequence_parallel;
}

Bytes pipeline_message(const Problem& problem) {
  const TokenShape token = token_shape(problem);
  const std::int64_t parts = scatters_messages(problem) ? problem.layout.tp : token.norm_rows;
  return Bytes{ceil_div(token.element * token.hidden * local_tokens(problem), parts)};
}

std::vector<CollectiveLoad> layer_collectives(const Problem& problem,
                                              const WeightInventory& inventory,
                                              const Stage& stage) {
  LoadList loads(problem);
  add_blocks(loads, problem, inventory, stage);
  return loads.take();
}

std::vector<CollectiveLoad> pass_collectives(const Problem& problem,
                                             const WeightInventory& inventory,
                                             const Stage& stage) {
  LoadList loads(problem);
  add_blocks(loads, problem, inventory, stage);
  add_pipeline(loads, problem, stage);
  return loads.take();
}

std::vector<CollectiveLoad> update_collectives(const Problem& problem,
                                               const WeightInventory& inventory,
                                               const Stage& stage) {
  LoadList loads(problem);
  add_data_parallel(loads, problem, inventory, stage);
  add_tied_embedding(loads, problem, inventory, stage);
  add_replicated_weights(loads, problem, inventory, stage);
  return loads.take();
}

std::vector<CollectiveLoad> step_collectives(const Problem& problem,
                                             const WeightInventory& inventory,
                                             const Stage& stage) {
  std::vector<CollectiveLoad> loads = pass_collectives(problem, inventory, stage);
  const std::vector<CollectiveLoad> update = update_collectives(problem, inventory, stage);
  loads.insert(loads.end(), update.begin(), update.end());
  return loads;
}

}  // namespace zeroplan
