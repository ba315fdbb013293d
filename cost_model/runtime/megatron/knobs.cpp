// Which settings do layouts decide of Megatron-Core? Front doors: megatron_layer_choices,
// megatron_knobs, take_megatron_layout.
#include "cost_model/runtime/megatron/code.hpp"

#include "cost_model/runtime/usual.hpp"

namespace zeroplan {

// By recompute_method=block.
LayerChoices megatron_layer_choices(const GivenSettings& r, Recompute policy) {
  const MegatronSettings& set = r.runtime.megatron;
  return {.number = policy == Recompute::full && set.recompute_num_layers == 0 &&
                    set.recompute_method == RecomputeMethod::uniform &&
                    !r.gives("recompute_num_layers") && !r.gives("recompute_method")};
}

// Megatron-FSDP always overlaps. What is given stays; parameters overlap only where gradients do,
// so who gives the former leaves the latter open.
std::vector<ShardingSettings> megatron_knobs(const GivenSettings& r, const Problem& p) {
  using enum Overlap;
  const MegatronSettings& set = r.runtime.megatron;
  const bool fsdp = p.layout.zero > ZeroStage::optimizer;
  const bool with_gradients = r.gives("overlap_grad_reduce") || set.overlap_grad_reduce;
  const bool with_parameters = r.gives("overlap_param_gather") || set.overlap_param_gather;
  std::vector<ShardingSettings> open;
  const auto add = [&](Overlap overlap) { open.push_back({.overlap = overlap}); };
  if (!fsdp && !with_parameters && (!with_gradients || set.overlap_grad_reduce)) add(parameters);
  if (!fsdp && !with_gradients) add(gradients);
  add(as_set);
  return open;
}

void take_megatron_layout(const RuntimeSpec& all, const Layout& l, RuntimeSpec& taken) {
  const MegatronSettings& asked = all.megatron;
  MegatronSettings& set = taken.megatron;
  set.recompute_method = l.recompute_layers > 0 ? RecomputeMethod::block : asked.recompute_method;
  set.recompute_num_layers =
      l.recompute_layers > 0 ? l.recompute_layers : asked.recompute_num_layers;
  set.recompute_modules = l.recompute_modules > 0 ? l.recompute_modules : asked.recompute_modules;
  set.tp_comm_overlap = asked.tp_comm_overlap || l.tp_overlap;
  set.overlap_grad_reduce = asked.overlap_grad_reduce;
  set.overlap_param_gather = asked.overlap_param_gather;
  if (l.overlap != Overlap::as_set) set.overlap_grad_reduce = true;
  if (l.overlap == Overlap::parameters) set.overlap_param_gather = true;
}

}  // namespace zeroplan
