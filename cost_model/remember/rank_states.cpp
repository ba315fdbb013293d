// What do ZeRO, HSDP and offload decide? Front door: rank_states.
#include "cost_model/remember/rank_states.hpp"

#include "cost_model/program/fold.hpp"
#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "cost_model/runtime/megatron/stage.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"
#include "cost_model/states/overheads.hpp"

namespace zeroplan {

RankStates rank_states(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage) {
  RankStates share{.states = model_states(problem, inventory, stage),
                   .communicators = communicator_bytes(problem)};
  share.sums.states = share.states.total();
  share.sums.outside = share.communicators + context_bytes(problem);
  if (!code_of(problem).sums_blocks) return share;
  share.resident = sum(megatron_states(problem, inventory, stage, share.states));
  const Block step = megatron_optimizer_step(problem, inventory, stage, share.states, Bytes{});
  share.optimizer_step = fold(step, step.forward, Phase::optimizer_step);
  share.construction = megatron_construction(problem, inventory, stage, share.resident);
  share.sums.resident = share.resident.allocated();
  share.sums.step = share.optimizer_step.peak.live.allocated();
  share.sums.construction = share.construction.live.allocated();
  if (is_megatron_fsdp(problem)) {
    share.sums.bucket_padding = fsdp_padding_of_ends(problem, inventory, stage);
  }
  return share;
}

std::int64_t parts_key(const Problem& problem) {
  if (!loss_parts(problem).of_hidden()) return 0;
  return head_alternates(problem) ? 1 : 2;
}

}  // namespace zeroplan
