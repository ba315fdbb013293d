// What does one Megatron layer allocate and free? Front door: megatron_layer.
#include "cost_model/runtime/megatron/layer.hpp"

#include <optional>

#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/question/layer_width.hpp"

namespace zeroplan {
namespace {

struct LayerTensors {
  AttentionTensors attention;
  Tensor middle = BlockWriter::none;  // after attention and its residual, where an MLP follows
  FeedForwardTensors feed_forward;

  /// What the layer's last residual is added to.
  Tensor result(LayerKind kind) const {
    return has_feed_forward(kind) ? feed_forward.result : attention.result;
  }
};

AttentionTensors write_mixer(BlockWriter& w, const MegatronShape& s, LayerKind kind) {
  if (!is_linear(kind)) return write_attention_forward(w, s);
  return s.problem.model.state_space ? write_state_space_forward(w, s)
                                     : write_linear_attention_forward(w, s);
}

Tensor write_mixer_backward(BlockWriter& w,
                            const MegatronShape& s,
                            LayerKind kind,
                            const AttentionTensors& t) {
  if (!is_linear(kind)) return write_attention_backward(w, s, t);
  return s.problem.model.state_space ? write_state_space_backward(w, s, t)
                                     : write_linear_attention_backward(w, s, t);
}

FeedForwardTensors write_feed_forward(BlockWriter& w, const MegatronShape& s, LayerKind kind) {
  return has_experts(kind) ? write_moe_forward(w, s) : write_mlp_forward(w, s);
}

// What the layer reads leaves with this module, unless somebody beyond `most` holds it.
void leave_input(BlockWriter& w,
                 const MegatronShape& s,
                 OffloadModule module,
                 InputHolder most = InputHolder::model) {
  if (s.host == nullptr) return;
  TensorList input;
  if (s.host->input_holder() <= most) input.push_back(Block::input);
  leave(w, s, module, input, s.token.element);
}

// A norm fused into the joint projection saves the layer's input with that; the caller holds it
// until the layer returns.
void leave_fused_input(BlockWriter& w, const MegatronShape& s, LayerKind kind) {
  if (has_mixer(kind) && !is_linear(kind) && !has_own_input_norm(s.problem)) {
    leave_input(w, s, OffloadModule::qkv_linear, InputHolder::none);
  }
}

// Writes the layer up to the sum with its last residual; that sum is `output`, or new where it is
// not a slot of the block.
LayerTensors write_forward(BlockWriter& w, const MegatronShape& s, LayerKind kind) {
  if (is_quantized(s.problem.training.precision)) w.run(Module::casts);
  LayerTensors t;
  if (has_mixer(kind)) {
    t.attention = write_mixer(w, s, kind);
    if (s.norms().after) w.run(Module::post_norm);
    if (has_feed_forward(kind)) t.middle = w.save("attention residual", s.residual());
    w.run(Module::residual);
    leave_input(w, s, OffloadModule::attn_norm);
  }
  if (!has_feed_forward(kind)) {
    leave_fused_input(w, s, kind);
    return t;
  }
  w.free(t.attention.result);
  t.feed_forward = write_feed_forward(w, s, kind);
  if (s.norms().after) w.run(Module::post_norm);
  w.run(Module::residual);
  if (t.middle != BlockWriter::none) {
    leave(w, s, OffloadModule::mlp_norm, {t.middle}, s.token.element);
  } else {
    leave_input(w, s, OffloadModule::mlp_norm);
  }
  leave_fused_input(w, s, kind);
  return t;
}

// Whether the MLP's recompute makes its norm again: it is fused into the first linear then.
bool drops_norm_with_mlp(const MegatronShape& s, LayerKind kind) {
  return s.drops(RecomputeModule::mlp) && !has_own_pre_mlp_norm(s.problem, kind);
}

// What selective recompute drops when the forward pass of the layer is over.
void drop(BlockWriter& w, const MegatronShape& s, LayerKind kind, const LayerTensors& t) {
  using enum RecomputeModule;
  const FeedForwardTensors& f = t.feed_forward;
  if (has_mixer(kind) && s.drops_input_norm()) w.free(t.attention.norm.output);
  if (!has_feed_forward(kind)) return;
  const bool with_mlp = drops_norm_with_mlp(s, kind);
  if (with_mlp || s.drops_pre_mlp_norm(kind)) w.free(f.norm.output);
  if (with_mlp) w.free(f.norm.statistics);
  if (!has_experts(kind)) {
    if (s.drops(mlp)) w.free(f.saved);
    return;
  }
  if (s.drops(moe)) return w.free(f.saved);
  if (s.drops(shared_experts)) {
    w.free(f.shared_fc1);
    w.free(f.shared_activation);
    w.free(f.shared_gate);
  }
}

// The output of a norm, made again as the norm made it: what reads it saves no copy of its own
// (core/transformer/transformer_layer.py, set_save_original_input).
Tensor write_recomputed_norm(BlockWriter& w, const MegatronShape& s, Module module) {
  w.run(module);
  return w.temporary("recomputed norm output", s.residual());
}

// What selective recompute makes again when the backward pass begins.
void restore(BlockWriter& w, const MegatronShape& s, LayerKind kind, LayerTensors& t) {
  using enum RecomputeModule;
  FeedForwardTensors& f = t.feed_forward;
  if (!has_feed_forward(kind)) return;
  if (drops_norm_with_mlp(s, kind)) f.norm = write_pre_mlp_norm(w, s, kind);
  if (s.drops_pre_mlp_norm(kind)) {
    f.norm.output = write_recomputed_norm(w, s, Module::pre_mlp_norm);
  }
  if (!has_experts(kind)) {
    if (!s.drops(mlp)) return;
    write_linears_forward(w, s, f);
    w.free(f.result);
    return;
  }
  if (s.drops(moe)) {
    write_experts_forward(w, s, f);
    w.free(f.result);
  } else if (s.drops(moe_act)) {
    f.activation_output = write_expert_activation(w, s);
  }
}

// From the gradient of what a half and its residual gave to that of what both read: `half` gives
// its part, which passes `norm`. `sum`: a slot of the block, or none for a tensor of this name.
template <class Half>
Tensor write_half_backward(BlockWriter& w,
                           const MegatronShape& s,
                           Half half,
                           std::optional<Module> norm,
                           std::string_view name,
                           Tensor sum) {
  w.run_backward(Module::residual);
  if (s.norms().after) w.run_backward(Module::post_norm);
  const Tensor part = half();
  if (sum == Block::input_grad) {
    w.allocate(sum);
  } else {
    sum = w.temporary(name, s.residual());
  }
  if (norm) w.run_backward(*norm);
  w.free(part);
  return sum;
}

// Backward pass of the layer's halves. `output_gradient` is freed when the residual has taken it
// over; gives the gradient of the layer's input.
Tensor write_backward(BlockWriter& w,
                      const MegatronShape& s,
                      LayerKind kind,
                      const LayerTensors& t,
                      Tensor output_gradient,
                      Tensor input_gradient) {
  constexpr std::string_view of_input = "layer input gradient";
  Tensor gradient = output_gradient;
  if (has_feed_forward(kind)) {
    const auto half = [&] {
      return has_experts(kind) ? write_moe_backward(w, s, t.feed_forward)
                               : write_mlp_backward(w, s, t.feed_forward);
    };
    const std::optional norm{Module::pre_mlp_norm};
    const bool first = !has_mixer(kind);
    const Tensor sum = write_half_backward(w, s, half, s.norms().pre_mlp ? norm : std::nullopt,
                                           first ? of_input : "attention residual gradient",
                                           first ? input_gradient : BlockWriter::none);
    w.free(t.feed_forward.norm.statistics);
    w.free(t.middle);
    const bool routed_only =
        has_experts(kind) && s.problem.model.moe->shared_intermediate_size == 0;
    routed_only ? w.free(gradient) : free_output_gradient(w, s, gradient);
    gradient = sum;
    left(w, s, OffloadModule::mlp_norm);
  }
  if (has_mixer(kind)) {
    const auto half = [&] {
      AttentionTensors attention = t.attention;
      if (s.drops_input_norm()) {
        attention.norm.output = write_recomputed_norm(w, s, Module::input_norm);
      }
      return write_mixer_backward(w, s, kind, attention);
    };
    const Tensor sum =
        write_half_backward(w, s, half, Module::input_norm, of_input, input_gradient);
    w.free(t.attention.norm.statistics);
    free_output_gradient(w, s, gradient);
    gradient = sum;
    left(w, s, OffloadModule::attn_norm);
  }
  if (is_quantized(s.problem.training.precision)) w.run_backward(Module::casts);
  if (kernel_habits(s.problem).layer_sum_bytes > 0) w.run_backward(Module::gradient_sum);
  return gradient;
}

// The groups of a layer that leave, in that order.
std::vector<HostGroups::Sizes> groups_of(const Problem& problem,
                                         const Leaving& layer,
                                         RepeatSet dropped) {
  const OfKind of_kind(problem, layer.kind);
  HostGroups groups(*of_kind, layer, dropped);
  const MegatronShape s = megatron_shape(*of_kind, dropped, &groups);
  BlockWriter w(s.residual(), s.residual());
  write_forward(w, s, layer.kind);
  return groups.sizes(w);
}

// `returned`: of its groups on the host, those that come back before the layer's backward pass.
Block write_layer(const Problem& problem,
                  LayerKind kind,
                  RepeatSet dropped,
                  HostGroups* host,
                  std::int64_t returned) {
  const OfKind of_kind(problem, kind);
  const MegatronShape s = megatron_shape(*of_kind, dropped, host);
  BlockWriter w(s.residual(), s.residual());
  LayerTensors t = write_forward(w, s, kind);
  w.allocate(Block::output);
  w.free(t.result(kind));
  drop(w, s, kind, t);
  w.begin_backward();
  if (host != nullptr) host->come_back(w, returned);
  restore(w, s, kind, t);
  write_backward(w, s, kind, t, Block::output_grad, Block::input_grad);
  w.free(Block::input);
  return w.finish();
}

}  // namespace

Block megatron_layer(const Problem& problem, LayerKind kind, RepeatSet dropped) {
  return write_layer(problem, kind, dropped, nullptr, 0);
}

Block megatron_layer(const Problem& problem, RepeatSet dropped, const HostPlace& place) {
  std::vector<HostGroups::Sizes> brought;
  std::optional<Leaving> layer;  // whose groups these are
  std::vector<HostGroups::Sizes> groups;
  for (const Returning& returning : place.brings) {
    if (layer != returning.layer) groups = groups_of(problem, returning.layer, dropped);
    layer = returning.layer;
    brought.push_back(*(groups.rbegin() + returning.left_after));
  }
  HostGroups own(problem, place.own, dropped, std::move(brought));
  return write_layer(problem, place.own.kind, dropped, &own, place.returned);
}

Bytes moved_by_groups(const Problem& problem, const Leaving& layer) {
  Bytes all;
  for (const HostGroups::Sizes& group : groups_of(problem, layer, repeats(problem))) {
    for (const Bytes bytes : group) all += bytes;
  }
  return all;
}

Block megatron_recomputed_layers(const Problem& problem, const std::vector<LayerKind>& kinds) {
  const OfKind of_wide(problem, LayerKind::wide_dense);
  const MegatronShape s = megatron_shape(problem), wide = megatron_shape(*of_wide);
  const auto shape_of = [&](LayerKind kind) -> const MegatronShape& {
    return is_wide(kind) ? wide : s;
  };
  BlockWriter w(s.residual(), s.residual());
  constexpr Tensor none = -1;
  const std::size_t last = kinds.size() - 1;

  Tensor between = none;  // the output of a layer inside the group
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::size_t start = w.position();
    const LayerTensors t = write_forward(w, shape_of(kinds[i]), kinds[i]);
    const Tensor before = between;
    if (i == last) {
      w.allocate(Block::output);
    } else {
      between = w.temporary("layer output", s.residual());
    }
    w.free(t.result(kinds[i]));
    w.free(w.saved_since(start));
    w.free(before);
  }

  w.begin_backward();
  std::vector<LayerTensors> tensors;
  std::vector<Tensor> outputs;
  for (const LayerKind kind : kinds) {
    tensors.push_back(write_forward(w, shape_of(kind), kind));
    outputs.push_back(w.save("recomputed layer output", s.residual()));
    w.free(tensors.back().result(kind));
  }
  Tensor gradient = Block::output_grad;
  for (std::size_t i = kinds.size(); i-- > 0;) {
    const Tensor target = i == 0 ? Block::input_grad : none;
    gradient = write_backward(w, shape_of(kinds[i]), kinds[i], tensors[i], gradient, target);
    w.free(outputs[i]);
  }
  w.free(Block::input);
  return w.finish();
}

}  // namespace zeroplan
