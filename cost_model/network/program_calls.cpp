// What does a program send? Front doors: step_calls, block_calls.
#include "cost_model/network/program_calls.hpp"

#include "cost_model/program/fold.hpp"
#include "cost_model/runtime/fsdp2/recipe.hpp"
#include "cost_model/runtime/fsdp2/stage.hpp"
#include "cost_model/runtime/zeroplan/stage.hpp"

namespace zeroplan {
namespace {

// Under a recompute policy; 0: none.
std::vector<Call> calls_under(const Problem& p,
                              const WeightInventory& inventory,
                              BlockKind block,
                              LayerKind layer,
                              RepeatSet policy) {
  if (p.runtime.kind == Runtime::zeroplan) {
    Problem recomputing = p;
    recomputing.layout.recompute = policy == 0 ? Recompute::none : Recompute::full;
    return zeroplan_block(recomputing, inventory, block).calls;
  }
  const Checkpoint checkpoint = policy == whole_layer     ? Checkpoint::layer
                                : policy == titan_repeats ? Checkpoint::operators
                                                          : Checkpoint::none;
  const EagerCode code = fsdp2_recipe(p).code;
  return EagerBlockWriter(p, inventory, code, {block, layer, checkpoint}).write().calls;
}

bool is_in(const Call& call, LayerPart part) {
  return call.group == "ep" || call.group == "etp" ? has_routed(part) : has_rest(part);
}

}  // namespace

bool has_calls(const Problem& problem) {
  return problem.runtime.kind == Runtime::fsdp2 || problem.runtime.kind == Runtime::zeroplan;
}

std::vector<Call> step_calls(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage) {
  const StageProgram program = problem.runtime.kind == Runtime::zeroplan
                                   ? zeroplan_stage(problem, inventory, stage)
                                   : fsdp2_stage(problem, inventory, stage);
  return fold_calls(program, forward_passes(problem));
}

std::vector<BlockCall> block_calls(const Problem& problem,
                                   const WeightInventory& inventory,
                                   BlockKind block,
                                   LayerKind layer,
                                   LayerPart part) {
  const LoadList groups(problem);
  const std::vector<Call> once = calls_under(problem, inventory, block, layer, 0);
  std::vector<BlockCall> list;
  // What the policy makes of it beyond that.
  const auto add_more = [&](const std::vector<Call>& calls, RepeatSet policy) {
    std::vector<Call> more;
    for (const Call& call : calls) add(more, call);
    for (const Call& call : policy == 0 ? std::vector<Call>{} : once) add(more, call, -1);
    for (const Call& call : more) {
      const CollectiveLoad load = groups.load_of(call);
      if (load.is_sent() && is_in(call, part)) list.push_back({load, policy});
    }
  };
  add_more(once, 0);
  if (block != BlockKind::layer) return list;
  for (const RepeatSet policy : {whole_layer, titan_repeats}) {  // those that are ever asked for
    add_more(calls_under(problem, inventory, block, layer, policy), policy);
  }
  return list;
}

}  // namespace zeroplan
