// What do ZeRO, HSDP and offload decide? Front door: state_share.
#include "cost_model/remember/state_share.hpp"

#include <algorithm>

#include "cost_model/program/fold.hpp"
#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/runtime/megatron/stage.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"
#include "cost_model/states/overheads.hpp"

namespace zeroplan {

StateShare state_share(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage) {
  StateShare share{.states = model_states(problem, inventory, stage),
                   .communicators = communicator_bytes(problem)};
  share.sums.states = share.states.total();
  share.sums.outside = share.communicators + context_bytes(problem);
  if (!code_of(problem).sums_blocks) return share;
  share.resident = sum(megatron_states(problem, inventory, stage, share.states));
  const Block step = megatron_optimizer_step(share.states);
  share.optimizer_step = fold(step, step.forward, Phase::optimizer_step);
  share.construction = megatron_construction(problem, inventory, stage, share.resident);
  share.sums.resident = share.resident.allocated();
  share.sums.step = share.optimizer_step.peak.live.allocated();
  share.sums.construction = share.construction.live.allocated();
  return share;
}

StageContent content_of(const ModelSpec& model, const Stage& stage) {
  return {layer_count(model, stage, LayerKind::dense), layer_count(model, stage, LayerKind::moe),
          2 * static_cast<std::int64_t>(stage.embedding) + static_cast<std::int64_t>(stage.head)};
}

StateKey state_key(const Problem& problem, const Exchange& exchange, const StageContent& content) {
  const Layout& l = problem.layout;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const auto& [dense, moe, ends] = content;
  const bool parts = loss_parts(problem).of_hidden();
  return {l.dp,
          l.tp,
          l.pp,
          l.cp,
          l.ep,
          l.etp,
          exchange.hsdp,
          number(exchange.zero),
          number(exchange.offload) + 4 * exchange.reduce_bucket,
          number(l.sequence_parallel) + 2 * number(exchange.reshards_all),
          problem.training.sequence_length,
          number(problem.training.precision) + 16 * number(problem.training.optimizer),
          dense,
          moe,
          ends + 4 * number(parts) + 8 * number(parts && !head_alternates(problem))};
}

GridKey grid_key(const Problem& problem) {
  const StateKey states = state_key(problem, {}, {});
  GridKey key{problem.layout.micro_batch, problem.training.global_batch};
  std::ranges::copy(states, key.begin() + 2);
  return key;
}

}  // namespace zeroplan
