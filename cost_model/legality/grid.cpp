// Do the GPUs divide as asked? Front door: world.
#include <fmt/format.h>

#include <algorithm>

#include "cost_model/legality/reasons.hpp"

namespace zeroplan::legality {

Reason world(const Problem& p) {
  const Layout& l = p.layout;
  const std::int64_t each = l.tp * l.pp * l.cp;
  std::string grid = fmt::format("tp {} x pp {}", l.tp, l.pp);
  if (l.cp > 1) grid += fmt::format(" x cp {}", l.cp);
  return because(p.cluster.gpus % each != 0, "{} GPUs cannot be split into {} ({} each)",
                 p.cluster.gpus, grid, each);
}

Reason dense_only(const Problem& p) {
  const Layout& l = p.layout;
  return because(!p.model.moe && (l.ep > 1 || l.etp > 1),
                 "{} has no experts, so ep {} has nothing to divide", p.model.name,
                 std::max(l.ep, l.etp));
}

Reason expert_grid(const Problem& p) {
  const Layout& l = p.layout;
  return because(p.cluster.gpus % (l.etp * l.ep * l.pp) != 0,
                 "{} GPUs cannot be split into etp {} x ep {} x pp {}", p.cluster.gpus, l.etp, l.ep,
                 l.pp);
}

Reason experts_in_shard_group(const Problem& p) {
  const Layout& l = p.layout;
  const std::int64_t group = (l.hsdp > 0 ? l.hsdp : l.dp) * l.cp * l.tp;
  return because(group % l.ep != 0, "ep {} does not divide the {} ranks of a sharding group", l.ep,
                 group);
}

Reason no_expert_tensor_parallel(const Problem& p) {
  return because(p.model.moe && p.layout.etp > 1, "{} has no tensor parallelism inside experts",
                 runtime_name(p));
}

Reason hybrid_shards(const Problem& p) {
  const Layout& l = p.layout;
  return because(l.hsdp > 0 && l.dp % l.hsdp != 0, "hsdp {} does not divide dp {}", l.hsdp, l.dp);
}

Reason hybrid_needs_sharding(const Problem& p) {
  const ZeroStage least =
      p.runtime.kind == Runtime::deepspeed ? ZeroStage::parameters : ZeroStage::optimizer;
  return because(p.layout.hsdp > 0 && p.layout.zero < least, "hsdp needs ZeRO {} in {}",
                 name_of(least), runtime_name(p));
}

Reason no_hybrid(const Problem& p) {
  return because(p.layout.hsdp > 0, "{} has no hybrid sharding", runtime_name(p));
}

Reason data_parallel_only(const Problem& p) {
  const Layout& l = p.layout;
  return because(l.tp * l.pp * l.cp * l.ep > 1, "{} is data parallel only", runtime_name(p));
}

}  // namespace zeroplan::legality
