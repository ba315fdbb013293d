// Which settings do layouts decide of FSDP2? Front doors: fsdp2_layer_choices, fsdp2_knobs,
// take_fsdp2_layout.
#include "cost_model/runtime/fsdp2/code.hpp"

#include "cost_model/runtime/usual.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {

LayerChoices fsdp2_layer_choices(const GivenSettings& r, Recompute policy) {
  const Fsdp2Settings& set = r.runtime.fsdp2;
  const bool by_number = policy == Recompute::selective && set.selective_ac_layers > 0;
  const bool open = set.wrap_by_layer && policy != Recompute::none && !by_number &&
                    !r.gives("recompute_num_layers");
  return {.number = open && !set.selective_rest,
          .rest = open && policy == Recompute::full &&
                  (set.selective_rest || !r.gives("selective_rest"))};
}

// What stays gathered from forward to backward pass by default may be resharded too: the head and,
// before torchtitan had it in a unit of its own, the last layer.
std::vector<ShardingSettings> fsdp2_knobs(const GivenSettings& r, const Problem& p) {
  const bool keeps = keeps_last_layer(p) || !joins_ends(p);
  const Fsdp2Settings& set = r.runtime.fsdp2;
  const bool titan = set.layers == LayerCode::torchtitan;
  const bool reshards = p.layout.zero == ZeroStage::parameters && p.layout.pp == 1 &&
                        set.reshard_after_forward == Reshard::by_default &&
                        !r.gives("parallelism.fsdp_reshard_after_forward");
  const bool by_layer = reshards && set.wrap_by_layer && !r.gives("no_reshard_layers");
  std::vector<ShardingSettings> list{{}};
  if (reshards && titan && keeps && set.no_reshard_layers == 0) {
    list.push_back({.reshards_all = true});
  }
  for (std::int64_t n = keeps_last_layer(p) ? 2 : 1; by_layer && n <= p.model.layers; ++n) {
    list.push_back({.gathered_layers = n});
  }
  return list;
}

void take_fsdp2_layout(const RuntimeSpec& all, const Layout& l, RuntimeSpec& taken) {
  const Fsdp2Settings& asked = all.fsdp2;
  Fsdp2Settings& set = taken.fsdp2;
  set.reshard_after_forward = l.reshards_all ? Reshard::always : asked.reshard_after_forward;
  set.recompute_num_layers =
      l.recompute_layers > 0 ? l.recompute_layers : asked.recompute_num_layers;
  set.selective_rest = l.selective_rest || asked.selective_rest;
  set.no_reshard_layers = l.gathered_layers > 0 ? l.gathered_layers : asked.no_reshard_layers;
  set.loss_chunks = l.loss_chunks > 0 ? l.loss_chunks : asked.loss_chunks;
}

}  // namespace zeroplan
