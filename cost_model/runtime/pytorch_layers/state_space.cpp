// What does the mixer of a state space allocate? Front door: write_state_space.
// Source: transformers v5.24.0 models/bamba/modeling_bamba.py BambaMixer, whose one function of
// autograd reaches from the first projection's output to the last one's.
#include "cost_model/runtime/pytorch_layers/state_space.hpp"

#include "cost_model/runtime/state_scan.hpp"

namespace zeroplan {
namespace {

StateScan scan_of(const EagerShape& s) {
  return {.mixer = *s.problem.model.state_space,
          .element = s.token.element,
          .tokens = s.tokens,
          .samples = s.problem.layout.micro_batch,
          .gates = false};
}

}  // namespace

std::vector<Tensor> tensors_of(const EagerStateSpace& t) {
  return {t.projected, t.scanned, t.statistics};
}

void write_state_space(EagerPass& pass, const EagerShape& s, EagerAttention& t) {
  const StateScan z = scan_of(s);
  BlockWriter& w = pass.writer();
  EagerStateSpace& own = t.state_space;
  own.projected = pass.multiply({Module::in_proj}, "gate, features and time steps", z.projected());
  const TensorList within =
      write_state_scan(w, z, [&] { own.scanned = pass.make("output of the scan", z.features()); });
  w.run(Module::gated_output);
  const Tensor normed = w.temporary("normalised and gated", z.features());
  own.statistics = pass.make("norm statistics", z.norm_statistics());
  t.result = pass.multiply({Module::o_proj}, "projection output", s.features(s.token.hidden));
  w.free(within);
  w.free(normed);
  pass.done(own.scanned);
  pass.done(own.statistics);
  pass.done(own.projected);
  pass.done(t.input);
}

Tensor write_state_space_backward(BlockWriter& w,
                                  const EagerShape& s,
                                  const EagerAttention& t,
                                  const OnGradient& on_gradient) {
  const StateScan z = scan_of(s);
  const EagerStateSpace& own = t.state_space;
  const auto make = [&](std::string_view name, Bytes bytes) { return w.temporary(name, bytes); };
  const Tensor given = write_gathered_gradient(w, s, "narrow output gradient");
  const Tensor normed = make("normalised and gated", z.features());
  const Tensor convolved = make("convolved", z.mixed());
  const Tensor projected = make("gradient of all that was projected", z.projected());
  const Tensor mixed = make("gradient of what was convolved", z.mixed());
  const Tensor output = make("gradient of the gated output", z.features());
  w.run_backward(Module::gated_output);
  const Tensor scanned = make("gradient of the scan's output", z.features());
  w.free(make("norm weight gradient in parts", z.norm_weight_parts()));
  w.run_backward(Module::state_scan);
  write_state_scan_backward(w, z);
  write_linear_gradients(w, s, Module::o_proj, on_gradient);
  w.run_backward(Module::convolution);
  on_gradient(w, "conv1d", s.elements("conv1d"));
  w.free({scanned, convolved, mixed, normed, output, given});
  for (const Tensor tensor : tensors_of(own)) w.free(tensor);

  write_linear_gradients(w, s, Module::in_proj, on_gradient);
  InputGradient input(w, s, s.features(s.token.hidden));
  const Tensor part = input.make();
  w.free_with_weights(projected);
  w.free_with_weights(t.input);
  input.add(part);
  return input.sum();
}

}  // namespace zeroplan
