// What does a program send? Front doors: step_calls, block_calls.
#include "cost_model/network/program_calls.hpp"

#include "cost_model/question/runtime_code.hpp"

namespace zeroplan {
namespace {

bool is_in(const Call& call, LayerPart part) {
  return call.group == "ep" || call.group == "etp" ? has_routed(part) : has_rest(part);
}

}  // namespace

bool has_calls(const Problem& problem) {
  return *code_of(problem).step_calls != nullptr;
}

std::vector<Call> step_calls(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage) {
  return (*code_of(problem).step_calls)(problem, inventory, stage);
}

std::vector<BlockCall> block_calls(const Problem& problem,
                                   const WeightInventory& inventory,
                                   BlockKind block,
                                   LayerKind layer,
                                   LayerPart part) {
  const LoadList groups(problem);
  const auto own = *code_of(problem).block_calls;
  const std::vector<Call> once = own(problem, inventory, block, layer, 0);
  std::vector<BlockCall> list;
  // Those of a policy beyond what is known already.
  const auto add_beyond = [&](const std::vector<Call>& known, const std::vector<Call>& calls,
                              RepeatSet policy) {
    std::vector<Call> more;
    for (const Call& call : calls) add(more, call);
    for (const Call& call : known) add(more, call, -1);
    for (const Call& call : more) {
      const CollectiveLoad load = groups.load_of(call);
      if (load.is_sent() && is_in(call, part)) list.push_back({load, policy});
    }
  };
  add_beyond({}, once, 0);
  if (block != BlockKind::layer) return list;
  for (const RepeatSet policy : {whole_layer, titan_repeats}) {  // those that are ever asked for
    add_beyond(once, own(problem, inventory, block, layer, policy), policy);
  }
  return list;
}

}  // namespace zeroplan
