// What do experts and their router allocate? Front door: write_experts.
#include "cost_model/runtime/pytorch_layers/experts.hpp"

#include <utility>

namespace zeroplan {
namespace {

// Router scores and their softmax in fp32, and the order of the tokens. torchtitan keeps the
// softmax alone, and of each that was chosen its expert, its place in the order, its token, int64,
// and its score (models/common/moe.py TopKRouter, and the token dispatcher's reordering @0.3.0).
std::vector<Tensor> write_routing(EagerPass& pass, const EagerShape& s, std::int64_t tokens) {
  const MoeSpec& moe = *s.problem.model.moe;
  std::vector<Tensor> kept;
  if (s.style.widens_router) {
    kept.push_back(pass.make("router weight in fp32", Bytes{wide_element * s.elements("router")}));
    kept.push_back(
        pass.make("router input in fp32", Bytes{wide_element * s.token.hidden * tokens}));
  }
  const std::int64_t score =
      s.style.keeps_softmax ? wide_element : s.token.element + 2 * wide_element;
  const std::int64_t chosen = s.style.keeps_softmax ? 3 * 8 + wide_element : 2 * 8;
  kept.push_back(pass.make("router scores", Bytes{score * moe.experts * tokens}));
  kept.push_back(pass.make("chosen experts", Bytes{chosen * moe.experts_per_token * tokens}));
  return kept;
}

// torchtitan's MoE multiplies scores, which are fp32, with what the experts gave, and keeps both.
Bytes widened(const EagerShape& s, const MlpShape& routed) {
  const bool wider = s.style.widens_routed && s.token.element < wide_element;
  return wider ? Bytes{wide_element * routed.rows * s.token.hidden} : Bytes{};
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

// Transformers' sum over the experts of a token, in the format of their product with its scores
// (integrations/moe.py grouped_mm_experts_forward): gives what lives until its result is there.
std::vector<Tensor> write_weighed_sum(BlockWriter& w, const EagerShape& s, const MlpShape& routed) {
  if (!s.style.orders_weighed) return {};
  const std::int64_t element = s.style.scores_wide ? wide_element : s.token.element;
  const Bytes tokens{element * routed.rows * s.token.hidden};
  const Tensor weighed = w.temporary("weighed tokens", tokens);
  const Tensor ordered = w.temporary("weighed tokens in order", tokens);
  w.free(weighed);
  const bool narrows = element > s.token.element;
  const Bytes sum{narrows ? element * s.tokens * s.token.hidden : 0};
  return {ordered, w.temporary("sum of weighed tokens in fp32", sum)};
}

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

// Grouped products know no autocast: their tokens are fp32, as the weights are
// (transformers v5.24.0 integrations/moe.py _grouped_mm).
EagerShape in_weights_format(const EagerShape& s) {
  EagerShape own = s;
  if (s.style.autocast) own.token.element = wide_element;
  own.style.autocast = false;
  return own;
}

bool gates_shared(const EagerShape& s) {
  return s.problem.model.moe->shared_expert_gate;
}

// What shared experts give, times the sigmoid of one value a token, beside what routed ones do
// (transformers v5.24.0 models/qwen3_next/modeling_qwen3_next.py Qwen3NextSparseMoeBlock).
Tensor write_gated_sum(
    EagerPass& pass, const EagerShape& s, EagerFeedForward& t, Tensor routed, Tensor shared) {
  BlockWriter& w = pass.writer();
  w.run(Module::shared_expert_gate);
  t.shared_output = shared;
  const Tensor gated = w.temporary("gated output of shared experts", s.features(s.token.hidden));
  const Tensor sum = pass.make("routed and shared tokens", s.features(s.token.hidden));
  w.free({gated, routed});
  pass.done(t.shared_output);
  return sum;
}

// The gradient of what shared experts gave, and the gate's part of that of the input.
struct GatedGradients {
  Tensor shared = BlockWriter::none, input = BlockWriter::none;
};

GatedGradients write_gated_sum_backward(BlockWriter& w,
                                        const EagerShape& s,
                                        const EagerFeedForward& t,
                                        const OnGradient& on_gradient) {
  if (!gates_shared(s)) return {};
  const Bytes bytes = s.features(s.token.hidden);
  const Tensor shared = w.temporary("gradient of the shared experts' output", bytes);
  w.free(w.temporary("gradient of the gate by feature", bytes));
  w.free(t.shared_output);
  write_linear_gradients(w, s, Module::shared_expert_gate, on_gradient);
  return {shared, w.temporary("part of the input gradient", bytes)};
}

}  // namespace

std::int64_t linears_before_experts(const EagerShape& s) {
  const MoeSpec& moe = *s.problem.model.moe;
  const std::int64_t router = 1;
  if (!has_shared_experts(s)) return router;
  return router + (moe.gated ? 2 : 1) + (moe.shared_expert_gate ? 1 : 0);
}

bool keeps_expert_input(const EagerShape& s) {
  return has_shared_experts(s) || !s.style.widens_router;
}

Tensor write_router_backward(BlockWriter& w,
                             const EagerShape& s,
                             const EagerFeedForward& t,
                             const OnGradient& on_gradient,
                             Tensor input) {
  write_linear_gradients(w, s, Module::router, on_gradient);
  const Bytes narrow = s.features(s.token.hidden);
  const Tensor wide =
      w.temporary("fp32 router input gradient", s.style.widens_router ? 2 * narrow : Bytes{});
  for (const Tensor tensor : t.routing) w.free(tensor);
  if (s.style.autocast) {  // widened, and added in place
    const Tensor part = w.temporary("router input gradient", narrow);
    const Tensor widened = w.temporary("router input gradient in fp32", s.residual());
    for (const Tensor tensor : {part, widened}) w.free(tensor);
  }
  if (!s.style.widens_router) return input;
  const Tensor own = w.temporary("router input gradient", narrow);
  w.free(wide);
  const Tensor sum = w.temporary("expert layer input gradient", narrow);
  for (const Tensor tensor : {input, own}) w.free(tensor);
  return sum;
}

Tensor write_experts(EagerPass& pass, const EagerShape& s, EagerFeedForward& t) {
  if (s.style.repeats_tokens) return write_repeated_experts(pass, s, t);
  BlockWriter& w = pass.writer();
  const MlpShape routed = routed_mlp(s);
  const EagerShape own = in_weights_format(s);
  w.run({Module::router, Module::permute});
  t.routing = write_routing(pass, s, ceil_div(s.tokens, s.token.norm_rows));
  const bool sends = !(pass.reuses() && s.style.saves_exchanges);
  // What an exchange gives; gone at once unless a checkpoint by operators keeps it.
  const auto exchanged = [&](std::string_view name) {
    const bool kept = pass.is_by_operator() && s.style.saves_exchanges && s.problem.layout.ep > 1;
    return kept ? pass.keep(name, routed.hidden(own)) : w.temporary(name, routed.hidden(own));
  };
  ProductOfScores product(pass, s, routed);
  if (sends) dispatch(w, s);
  const Tensor sent = exchanged("routed tokens");
  t.permuted = pass.make("expert input", routed.hidden(own));
  pass.drop(sent);
  Tensor output = write_mlp(pass, own, routed, t.mlp);
  if (sends) combine(w, s);
  const Tensor back = s.style.orders_weighed ? BlockWriter::none : exchanged("returned tokens");
  const auto run_shared = [&](bool last) {
    if (!has_shared_experts(s) || last != s.style.shared_last) return BlockWriter::none;
    const Tensor shared = write_mlp(pass, s, shared_mlp(s), t.shared);
    w.run(Module::shared_sum);
    return shared;
  };
  const Tensor added_to = run_shared(false);
  output = product.put_in_order(output);
  // What the scores weigh stays for their gradient.
  t.weighed = s.style.widens_routed ? pass.make("routed tokens in fp32", widened(s, routed))
                                    : std::exchange(output, BlockWriter::none);
  const Bytes weighed_bytes = s.style.weighs_rows ? widened(s, routed) : Bytes{};
  const Tensor weighed = s.style.weighs_rows ? w.temporary("weighed tokens in fp32", weighed_bytes)
                                             : product.multiply();
  const std::vector<Tensor> summing = write_weighed_sum(w, own, routed);
  const Tensor combined = pass.make("combined tokens", own.features(s.token.hidden));
  for (const Tensor tensor : summing) w.free(tensor);
  w.free(weighed);
  pass.drop(output);
  pass.drop(back);
  if (gates_shared(s)) {
    product.finish();
    return write_gated_sum(pass, s, t, combined, added_to);
  }
  pass.drop(added_to);
  product.finish();
  const Tensor shared = run_shared(true);
  if (shared == BlockWriter::none) return combined;
  const Tensor sum = pass.make("routed and shared tokens", own.features(s.token.hidden));
  pass.drop(combined);
  pass.drop(shared);
  return sum;
}

Tensor write_experts_backward(BlockWriter& w,
                              const EagerShape& s,
                              const EagerFeedForward& t,
                              const OnGradient& on_gradient) {
  if (s.style.repeats_tokens) return write_repeated_experts_backward(w, s, t, on_gradient);
  const MlpShape routed = routed_mlp(s);
  const EagerShape own = in_weights_format(s);
  const GatedGradients gated = write_gated_sum_backward(w, s, t, on_gradient);
  const auto through_shared = [&](bool last) {
    if (!has_shared_experts(s) || last != s.style.shared_last) return BlockWriter::none;
    w.run_backward(Module::shared_sum);
    // A router that widened its input does not keep it.
    const Tensor read = s.style.widens_router ? t.input : BlockWriter::none;
    return write_mlp_backward(w, s, shared_mlp(s), t.shared, on_gradient, read, gated.shared);
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
  w.free(t.weighed);
  const Tensor combined = w.temporary("returned tokens gradient", routed.hidden(own));
  w.free(wide);
  dispatch(w, s);
  const Tensor output = w.temporary("expert output gradient", routed.hidden(own));
  w.free(combined);
  const Tensor routed_input =
      write_mlp_backward(w, own, routed, t.mlp, on_gradient, t.permuted, output);
  combine(w, s);
  const Tensor sent = w.temporary("routed tokens gradient", routed.hidden(own));
  w.free(routed_input);
  const Tensor input = w.temporary("expert layer input gradient", own.features(s.token.hidden));
  w.free(sent);
  w.free(gated.input);
  w.free(shared_input);
  w.free(through_shared(false));
  w.run_backward(Module::permute);
  const Tensor sum = write_router_backward(w, s, t, on_gradient, input);
  if (!s.style.widens_router) w.free(t.input);
  return sum;
}

}  // namespace zeroplan
