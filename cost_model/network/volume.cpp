// What does a step send? Front door: step_collectives.
#include "cost_model/network/volume.hpp"

#include <iterator>

#include "cost_model/network/load_list.hpp"
#include "cost_model/rank/token_shape.hpp"

namespace zeroplan {
namespace {

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

}  // namespace

std::int64_t turns(const Problem& problem, const Stage& stage) {
  if (problem.layout.schedule != Schedule::zb_v) return 0;
  std::int64_t count = 0;
  for (std::size_t i = 1; i < stage.chunks.size(); ++i) {
    count += stage.chunks[i - 1].last == stage.chunks[i].first;
  }
  return count;
}

Bytes sent_bytes_per_step(const CollectiveLoad& load) {
  return load.calls * sent_bytes_per_rank(load.collective, load.group.ranks, load.payload);
}

bool scatters_messages(const Problem& problem) {
  return problem.runtime.megatron.scatter_gather_tensors_in_pipeline && problem.layout.tp > 1 &&
         !problem.layout.sequence_parallel;
}

Bytes pipeline_message(const Problem& problem) {
  const TokenShape token = token_shape(problem);
  const std::int64_t parts = scatters_messages(problem) ? problem.layout.tp : token.norm_rows;
  return Bytes{ceil_div(token.element * token.hidden * local_tokens(problem), parts)};
}

std::vector<CollectiveLoad> pass_collectives(const Problem& problem,
                                             const WeightInventory& inventory,
                                             const Stage& stage) {
  LoadList loads(problem);
  loads.add_calls(calls_of(code_of(problem).step_calls(problem, inventory, stage), false));
  add_pipeline(loads, problem, stage);
  return loads.take();
}

std::vector<CollectiveLoad> update_collectives(const Problem& problem,
                                               const WeightInventory& inventory,
                                               const Stage& stage) {
  const RuntimeCode& code = code_of(problem);
  LoadList loads(problem);
  loads.add_calls(*code.update_calls != nullptr
                      ? code.update_calls(problem, inventory, stage)
                      : calls_of(code.step_calls(problem, inventory, stage), true));
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
