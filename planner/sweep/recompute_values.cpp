// What is tried of recompute? Front doors: recompute_policies, recompute_modules, recompute_layers.
#include "planner/sweep/recompute_values.hpp"

#include "cost_model/rank/recomputed.hpp"

namespace zeroplan {
namespace {

// Added to the number of layers: above all that there are.
constexpr std::int64_t selective_rest = 1 << 20;

constexpr std::int64_t bit(RecomputeModule module) {
  return bit_of(module);
}

// Sets of modules of the MLP. Of experts: whoever recomputes all of a layer (moe) has the rest with
// it.
Values mlp_modules(const ModelSpec& model) {
  using enum RecomputeModule;
  if (!model.moe) return {0, bit(mlp)};
  Values list{0, bit(moe_act), bit(moe)};
  if (model.moe->shared_intermediate_size > 0) {
    list.push_back(bit(shared_experts));
    list.push_back(bit(shared_experts) | bit(moe_act));
  }
  return list;
}

// Of attention, beside its core: up-projections of latents, the output of linear attention.
Values attention_modules(const ModelSpec& model) {
  using enum RecomputeModule;
  Values list{0};
  if (model.attention.mla) list.push_back(bit(mla_up_proj));
  if (model.linear_attention) list.push_back(bit(gdn_norm_out));
  return list;
}

// Sets as bits of RecomputeModule; 0: as the runtime is set, to the core of attention. With flash
// attention that saves next to nothing, so the others go without it; without, they go with it.
Values module_sets(const Request& r, const Problem& p) {
  using enum RecomputeModule;
  Values list;
  const bool unfused = p.training.attention == AttentionKernel::unfused;
  const Values norm_sets = has_own_norms(p) ? Values{0, bit(layernorm)} : Values{0};
  const std::int64_t core = unfused ? bit(core_attn) : 0;
  if (unfused || r.recompute) list.push_back(0);
  for (const std::int64_t own : attention_modules(r.model)) {
    for (const std::int64_t inner : mlp_modules(r.model)) {
      for (const std::int64_t norms : norm_sets) {
        const std::int64_t set = own | inner | norms;
        if (set > 0) list.push_back(core | set);
      }
    }
  }
  return list;
}

}  // namespace

Values recompute_modules(const Request& r, const Problem& p) {
  const bool open = choices_of(r).has_recompute_modules && !r.gives("recompute_modules") &&
                    p.layout.recompute == Recompute::selective;
  return open ? module_sets(r, p) : Values{0};
}

Values recompute_policies(const Request& r) {
  using enum Recompute;
  if (choices_of(r).has_recompute_modules) return numbers({none, selective, full});
  return numbers<Recompute>(recompute_choices(r));
}

LayerChoices open_layers(const Request& r, Recompute policy) {
  return r.recompute ? LayerChoices{} : code_of(r.runtime).layer_choices(r.settings(), policy);
}

Values recompute_layers(const Request& r, const Problem& p) {
  Values list{0};
  const LayerChoices open = open_layers(r, p.layout.recompute);
  const auto add = [&](std::int64_t rest) {
    for (std::int64_t k = 1; k < r.model.layers / (p.layout.pp * p.layout.vpp); ++k) {
      list.push_back(rest + k);
    }
  };
  if (open.number) add(0);
  if (open.rest) add(selective_rest);
  return list;
}

void set_recompute_layers(Layout& layout, std::int64_t value) {
  layout.recompute_layers = value % selective_rest;
  layout.selective_rest = value >= selective_rest;
}

}  // namespace zeroplan
