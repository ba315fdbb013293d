// Which settings do layouts decide of FSDP2? Front doors: fsdp2_knobs, take_fsdp2_layout.
#include "cost_model/runtime/fsdp2/code.hpp"

#include "cost_model/runtime/usual.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {

// What stays gathered from forward to backward pass by default may be resharded too: the head and,
// before torchtitan had it in a unit of its own, the last layer.
std::vector<ShardingSettings> fsdp2_knobs(const GivenSettings& r, const Problem& p) {
  const bool keeps = keeps_last_layer(p) || !joins_ends(p);
  const bool titan = r.runtime.fsdp2.layers == LayerCode::torchtitan;
  const bool open = titan && p.layout.zero == ZeroStage::parameters && p.layout.pp == 1 && keeps &&
                    r.runtime.fsdp2.reshard_after_forward == Reshard::by_default &&
                    !r.gives("parallelism.fsdp_reshard_after_forward");
  std::vector<ShardingSettings> list{{}};
  if (open) list.push_back({.reshards_all = true});
  return list;
}

void take_fsdp2_layout(const RuntimeSpec& all, const Layout& l, RuntimeSpec& taken) {
  const Fsdp2Settings& asked = all.fsdp2;
  Fsdp2Settings& set = taken.fsdp2;
  set.reshard_after_forward = l.reshards_all ? Reshard::always : asked.reshard_after_forward;
  set.loss_chunks = l.loss_chunks > 0 ? l.loss_chunks : asked.loss_chunks;
}

}  // namespace zeroplan
