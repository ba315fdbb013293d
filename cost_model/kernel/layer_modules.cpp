// Which modules does a layer have? Front door: layer_modules.
#include "cost_model/kernel/layer_modules.hpp"

#include <ranges>

#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/layer_gemms.hpp"

namespace zeroplan {
namespace {

// What runs between the projections before attention and the one after it.
void add_core(ModuleList& list, const Problem& p, LayerKind kind) {
  const ModelSpec& model = p.model;
  if (is_linear(kind)) {
    const Module state = model.state_space ? Module::state_scan : Module::delta_rule;
    for (const Module own : {Module::convolution, state, Module::gated_output}) {
      list.push_back({own});
    }
    return;
  }
  list.push_back({Module::qkv_split});
  if (model.attention.mla) list.push_back({Module::latent_norm});
  if (normalises_heads(p)) list.push_back({Module::query_key_norm});
  if (turns_heads(model)) list.push_back({Module::rotary});
  list.push_back({Module::core_attention});
}

// What runs before the second product of experts: the activation of their first.
void add_expert_activation(ModuleList& list, const Problem& p) {
  if (p.runtime.megatron.use_transformer_engine_op_fuser) return;
  list.push_back({Module::expert_activation});
}

// What runs before this linear, beside the one that is before it.
void add_before(ModuleList& list, const Problem& p, LayerKind kind, const Weight& linear) {
  if (linear.module == "proj") add_core(list, p, kind);
  if (linear.module == "fc2") {
    linear.expert ? add_expert_activation(list, p) : list.push_back({Module::activation});
  }
  if (linear.module == "shared_fc2") list.push_back({Module::shared_activation});
}

// What runs after this linear, beside the one that is after it.
void add_after(ModuleList& list, const Problem& p, const Weight& linear) {
  if (linear.module == "router") list.push_back({Module::permute});
  const bool biased = linear.module == "fc2" && linear.expert;
  if (biased && kernel_habits(p).weights_expert_biases) list.push_back({Module::expert_bias});
  if (linear.module == "shared_fc2") list.push_back({Module::shared_sum});
}

}  // namespace

LayerModules layer_modules(const Problem& problem, LayerKind kind) {
  const ModelSpec& model = problem.model;
  const LayerNorms norms = layer_norms(problem);
  LayerModules layer;
  ModuleList* half = has_mixer(kind) ? &layer.attention : &layer.feed_forward;
  const auto end_half = [&] {
    if (norms.after) half->push_back({Module::post_norm});
    half->push_back({Module::residual});
  };
  if (casts_operands(problem)) half->push_back({Module::casts});
  const auto begin_feed_forward = [&] {
    half = &layer.feed_forward;
    if (norms.pre_mlp) half->push_back({Module::pre_mlp_norm});
  };
  if (!has_mixer(kind)) {
    begin_feed_forward();
  } else if (norms.input) {
    half->push_back({Module::input_norm});
  }
  for (const Weight& w : layer_weights(model, kind)) {
    if (w.columns == 1) continue;  // norms, biases
    const Module own = linear_of(problem, w);
    if (half->empty() || half->back().module != own) {
      add_before(*half, problem, kind, w);
      half->push_back({own, true});
      add_after(*half, problem, w);
    }
    if (w.module != "proj" || !has_feed_forward(kind)) continue;
    end_half();
    begin_feed_forward();
  }
  end_half();
  return layer;
}

void run(BlockWriter& w, const ModuleList& modules) {
  for (const auto& [module, linear] : modules) w.run(module);
}

void run_backward(BlockWriter& w, const ModuleList& modules) {
  for (const auto& [module, linear] : modules | std::views::reverse) {
    linear ? w.run_linear_backward(module) : w.run_backward(module);
  }
}

}  // namespace zeroplan
