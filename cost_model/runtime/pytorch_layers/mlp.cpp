// What does the MLP or expert half of a layer allocate? Front door: write_eager_feed_forward.
#include "cost_model/runtime/pytorch_layers/gelu.hpp"

namespace zeroplan {
namespace {

// One MLP on one rank: `rows` tokens of `width` intermediate features.
struct MlpShape {
  std::int64_t rows;
  std::int64_t width;
  bool gated;
  enum class Kind { dense, shared, routed } kind;

  bool expert() const { return kind == Kind::routed; }
  // The names of its weights, and of what stands between its products.
  Module gate() const {
    return kind == Kind::shared ? Module::shared_gate_proj : Module::gate_proj;
  }
  Module up() const { return kind == Kind::shared ? Module::shared_up_proj : Module::up_proj; }
  Module down() const {
    return kind == Kind::shared ? Module::shared_down_proj : Module::down_proj;
  }
  Module activation() const {
    return kind == Kind::dense    ? Module::activation
           : kind == Kind::shared ? Module::shared_activation
                                  : Module::expert_activation;
  }

  Bytes wide(const EagerShape& s) const { return Bytes{s.token.element * rows * width}; }
  Bytes hidden(const EagerShape& s) const { return Bytes{s.token.element * rows * s.token.hidden}; }
};

MlpShape dense_mlp(const EagerShape& s) {
  return {s.tokens, s.token.mlp, s.problem.model.mlp.gated, MlpShape::Kind::dense};
}

MlpShape shared_mlp(const EagerShape& s) {
  const MoeSpec& moe = *s.problem.model.moe;
  return {s.tokens, ceil_div(moe.shared_intermediate_size, s.problem.layout.tp), moe.gated,
          MlpShape::Kind::shared};
}

MlpShape routed_mlp(const EagerShape& s) {
  const MoeSpec& moe = *s.problem.model.moe;
  return {routed_tokens(s.problem).received, ceil_div(moe.intermediate_size, s.problem.layout.etp),
          moe.gated, MlpShape::Kind::routed};
}

// Gives the output of the second projection.
Tensor write_mlp(EagerPass& pass, const EagerShape& s, const MlpShape& shape, EagerMlp& t) {
  const Bytes wide = shape.wide(s);
  BlockWriter& w = pass.writer();
  const auto multiply = [&](Module linear, std::string_view name, Bytes bytes) {
    if (!shape.expert() || s.style.saves_experts) return pass.multiply({linear}, name, bytes);
    w.run(linear);
    return pass.make(name, bytes);
  };
  if (shape.gated) {
    t.gate = multiply(shape.gate(), "gate", wide);
    // The compiler makes the activation again instead of keeping it.
    if (!s.style.compiled) {
      t.activated = pass.make("activated gate", wide);
      pass.done(t.gate);
    }
    t.up = multiply(shape.up(), "up", wide);
  } else {
    t.up = multiply(shape.up(), "fc1 output", wide);
  }
  w.run(shape.activation());
  if (s.style.compiled && pass.is_checkpoint()) {
    t.product = t.up;  // written in its place: nothing reads it again in this pass
    t.up = BlockWriter::none;
  } else if (!shape.gated && spells_gelu(s)) {
    t.product = write_gelu(pass, s, wide, t.gelu);
  } else {
    t.product = pass.make("activation output", wide);
  }
  for (Tensor* tensor : {&t.gate, &t.activated, &t.up}) pass.done(*tensor);
  // The compiler drops what no backward pass reads from what a checkpoint keeps.
  Tensor output;
  if (s.style.compiled) {
    pass.run_kept({shape.down()});
    output = pass.make("down", shape.hidden(s));
  } else {
    output = multiply(shape.down(), "down", shape.hidden(s));
  }
  pass.done(t.product);
  return output;
}

// Gives the gradient of its input, and frees what the forward pass kept.
// `output`: the gradient of the result where nothing else reads it, which goes with its last
// reader.
Tensor write_mlp_backward(BlockWriter& w,
                          const EagerShape& s,
                          const MlpShape& shape,
                          const EagerMlp& t,
                          const OnGradient& on_gradient,
                          Tensor output = BlockWriter::none) {
  const Bytes wide = shape.wide(s);
  const auto gradients_of = [&](Module linear) {
    write_linear_gradients(w, s, linear, on_gradient, shape.expert());
  };
  gradients_of(shape.down());
  const Tensor product = w.temporary("activation output gradient", wide);
  w.run_backward(shape.activation());
  w.free(t.product);
  w.free_with_weights(output);
  InputGradient input(w, shape.hidden(s));
  const auto project = [&](Tensor gradient, Module linear) {
    gradients_of(linear);
    const Tensor part = input.make();
    w.free_with_weights(gradient);
    input.add(part);
  };
  if (!shape.gated) {
    Tensor up = BlockWriter::none;
    if (spells_gelu(s)) {
      up = write_gelu_backward(w, s, wide, t.gelu, product);
    } else {
      up = w.temporary("fc1 output gradient", wide);
      w.free(product);
    }
    w.free(t.up);
    project(up, shape.up());
    return input.sum();
  }
  if (s.style.compiled) {
    // One kernel writes both gradients, the gate's over the product's.
    const Tensor up = w.temporary("up gradient", wide);
    w.free(t.up);
    w.free(t.gate);
    project(up, shape.up());
    project(product, shape.gate());
    return input.sum();
  }
  const Tensor up = w.temporary("up gradient", wide);
  const Tensor activated = w.temporary("activated gate gradient", wide);
  w.free(product);
  w.free(t.up);
  w.free(t.activated);
  project(up, shape.up());
  const Tensor gate = w.temporary("gate gradient", wide);
  w.free(activated);
  w.free(t.gate);
  project(gate, shape.gate());
  return input.sum();
}

// Router scores and their softmax in fp32, and the order of the tokens.
std::vector<Tensor> write_routing(EagerPass& pass, const EagerShape& s, std::int64_t tokens) {
  const MoeSpec& moe = *s.problem.model.moe;
  return {pass.make("router scores", Bytes{(s.token.element + 8) * moe.experts * tokens}),
          pass.make("chosen experts", Bytes{16 * moe.experts_per_token * tokens})};
}

// torchtitan's MoE multiplies scores, which are fp32, with what the experts gave, and keeps both.
Bytes widened(const EagerShape& s, const MlpShape& routed) {
  constexpr std::int64_t fp32 = 4;
  const bool wider = s.style.widens_routed && s.token.element < fp32;
  return wider ? Bytes{fp32 * routed.rows * s.token.hidden} : Bytes{};
}

// torchtitan's matrix product of scores and tokens (torchtitan v0.2.2 models/moe/moe.py). Variables
// of its function hold the tokens as they were sent and, put back in order, as they returned; the
// product is fp32, and so is its gradient, whose pass runs a checkpoint's layer again.
class ProductOfScores {
 public:
  ProductOfScores(EagerPass& pass, const EagerShape& s, const MlpShape& routed)
      : pass_(pass),
        w_(pass.writer()),
        runs_(widened(s, routed) > Bytes{} && !s.style.weighs_rows),
        tokens_(of_product(routed.hidden(s))),
        sums_(of_product(Bytes{4 * s.tokens * s.token.hidden})) {
    gradient_ =
        w_.temporary("fp32 gradient of combined tokens", pass.is_rebuilt() ? sums_ : Bytes{});
    sent_ = w_.temporary("tokens by expert", tokens_);
  }

  // What experts gave has been copied to where it returns to.
  Tensor put_in_order(Tensor output) {
    if (!runs_) return output;
    pass_.drop(output);
    return w_.temporary("returned tokens in order", tokens_);
  }
  Tensor multiply() { return w_.temporary("combined tokens in fp32", sums_); }
  void finish() {
    for (const Tensor tensor : {sent_, gradient_}) w_.free(tensor);
  }

 private:
  Bytes of_product(Bytes bytes) const { return runs_ ? bytes : Bytes{}; }

  EagerPass& pass_;
  BlockWriter& w_;
  bool runs_;
  Bytes tokens_, sums_;
  Tensor gradient_, sent_;
};

// Copies of tokens on their way to the ranks of their experts or back; those that divide an expert
// then have them all, or only its sum.
void send_tokens(BlockWriter& w, const EagerShape& s, Collective over_parts) {
  const std::int64_t element = s.token.element * s.token.hidden;
  const RoutedTokens routed = routed_tokens(s.problem);
  w.call("ep", Collective::all_to_all, Bytes{element * routed.sent});
  w.call("etp", over_parts, Bytes{element * routed.received});
}
void dispatch(BlockWriter& w, const EagerShape& s) {
  send_tokens(w, s, Collective::all_gather);
}
void combine(BlockWriter& w, const EagerShape& s) {
  send_tokens(w, s, Collective::reduce_scatter);
}

bool has_shared_experts(const EagerShape& s) {
  return s.problem.model.moe->shared_intermediate_size > 0;
}

Tensor write_experts(EagerPass& pass, const EagerShape& s, EagerFeedForward& t) {
  BlockWriter& w = pass.writer();
  const MlpShape routed = routed_mlp(s);
  w.run({Module::router, Module::permute});
  t.routing = write_routing(pass, s, ceil_div(s.tokens, s.token.norm_rows));
  const bool sends = !(pass.reuses() && s.style.saves_exchanges);
  // What an exchange gives; gone at once unless a checkpoint by operators keeps it.
  const auto exchanged = [&](std::string_view name) {
    const bool kept = pass.is_by_operator() && s.style.saves_exchanges && s.problem.layout.ep > 1;
    return kept ? pass.keep(name, routed.hidden(s)) : w.temporary(name, routed.hidden(s));
  };
  ProductOfScores product(pass, s, routed);
  if (sends) dispatch(w, s);
  const Tensor sent = exchanged("routed tokens");
  t.permuted = pass.make("expert input", routed.hidden(s));
  pass.drop(sent);
  Tensor output = write_mlp(pass, s, routed, t.mlp);
  if (sends) combine(w, s);
  const Tensor back = exchanged("returned tokens");
  const auto run_shared = [&](bool last) {
    if (!has_shared_experts(s) || last != s.style.shared_last) return BlockWriter::none;
    const Tensor shared = write_mlp(pass, s, shared_mlp(s), t.shared);
    if (s.problem.model.moe->shared_expert_gate) w.run(Module::shared_expert_gate);
    w.run(Module::shared_sum);
    return shared;
  };
  const Tensor added_to = run_shared(false);
  output = product.put_in_order(output);
  t.wide = pass.make("routed tokens in fp32", widened(s, routed));
  const Bytes weighed_bytes = s.style.weighs_rows ? widened(s, routed) : Bytes{};
  const Tensor weighed = s.style.weighs_rows ? w.temporary("weighed tokens in fp32", weighed_bytes)
                                             : product.multiply();
  const Tensor combined = pass.make("combined tokens", s.features(s.token.hidden));
  w.free(weighed);
  pass.drop(output);
  pass.drop(back);
  pass.drop(added_to);
  product.finish();
  const Tensor shared = run_shared(true);
  if (shared == BlockWriter::none) return combined;
  const Tensor sum = pass.make("routed and shared tokens", s.features(s.token.hidden));
  pass.drop(combined);
  pass.drop(shared);
  return sum;
}

Tensor write_experts_backward(BlockWriter& w,
                              const EagerShape& s,
                              const EagerFeedForward& t,
                              const OnGradient& on_gradient) {
  const MlpShape routed = routed_mlp(s);
  const auto through_shared = [&](bool last) {
    if (!has_shared_experts(s) || last != s.style.shared_last) return BlockWriter::none;
    w.run_backward(Module::shared_sum);
    if (s.problem.model.moe->shared_expert_gate) w.run_linear_backward(Module::shared_expert_gate);
    return write_mlp_backward(w, s, shared_mlp(s), t.shared, on_gradient);
  };
  const Tensor shared_input = through_shared(true);
  const Bytes wide_bytes = widened(s, routed);
  Tensor wide = w.temporary("fp32 gradient of weighed tokens", wide_bytes);
  if (s.style.weighs_rows) {
    const Tensor rows = w.temporary("fp32 gradient of routed tokens", wide_bytes);
    w.free(w.temporary("products for the gradient of scores", wide_bytes));
    w.free(wide);
    wide = rows;
  }
  w.free(t.wide);
  const Tensor combined = w.temporary("returned tokens gradient", routed.hidden(s));
  w.free(wide);
  dispatch(w, s);
  const Tensor output = w.temporary("expert output gradient", routed.hidden(s));
  w.free(combined);
  const Tensor routed_input = write_mlp_backward(w, s, routed, t.mlp, on_gradient, output);
  w.free(t.permuted);
  combine(w, s);
  const Tensor sent = w.temporary("routed tokens gradient", routed.hidden(s));
  w.free(routed_input);
  const Tensor input = w.temporary("expert layer input gradient", s.features(s.token.hidden));
  w.free(sent);
  w.free(shared_input);
  w.free(through_shared(false));
  w.run_backward(Module::permute);
  write_linear_gradients(w, s, Module::router, on_gradient);
  for (const Tensor tensor : t.routing) w.free(tensor);
  return input;
}

std::vector<Tensor> tensors_of(const EagerMlp& t) {
  return {t.gate,         t.activated,    t.up,           t.gelu.half,
          t.gelu.widened, t.gelu.tangent, t.gelu.shifted, t.product};
}

}  // namespace

EagerFeedForward write_eager_feed_forward(EagerPass& pass, const EagerShape& s, LayerKind kind) {
  if (s.has_pre_mlp_norm()) pass.writer().run(Module::pre_mlp_norm);
  EagerFeedForward t{.norm = write_eager_norm(pass, s, s.residual(), s.norm_statistics())};
  t.input = write_linear_input(pass, s, t.norm);
  const Tensor whole =
      kind == LayerKind::moe ? write_experts(pass, s, t) : write_mlp(pass, s, dense_mlp(s), t.mlp);
  pass.done(t.input);
  t.result = write_row_reduction(pass, s, whole);
  return t;
}

Tensor write_eager_feed_forward_backward(BlockWriter& w,
                                         const EagerShape& s,
                                         LayerKind kind,
                                         const EagerFeedForward& t,
                                         const OnGradient& on_gradient) {
  const Tensor whole = write_gathered_gradient(w, s, "gathered output gradient");
  const bool routed = kind == LayerKind::moe;
  const Tensor input = routed ? write_experts_backward(w, s, t, on_gradient)
                              : write_mlp_backward(w, s, dense_mlp(s), t.mlp, on_gradient, whole);
  if (routed) w.free_with_weights(whole);
  w.free(t.input);
  return write_input_reduction(w, s, input);
}

std::vector<Tensor> tensors_of(const EagerFeedForward& t) {
  std::vector<Tensor> list = tensors_of(t.norm);
  list.push_back(t.input);
  for (const EagerMlp& mlp : {t.mlp, t.shared}) {
    for (const Tensor tensor : tensors_of(mlp)) list.push_back(tensor);
  }
  list.insert(list.end(), t.routing.begin(), t.routing.end());
  list.push_back(t.permuted);
  list.push_back(t.wide);
  return list;
}

}  // namespace zeroplan
