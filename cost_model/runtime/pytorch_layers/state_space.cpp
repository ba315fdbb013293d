// What does the mixer of a state space allocate? Front door: write_state_space.
// Sources: transformers v5.24.0 models/bamba/modeling_bamba.py BambaMixer; state-spaces/mamba
// @e9594ce1 mamba_ssm/ops/triton/ssd_combined.py MambaSplitConv1dScanCombinedFn, one function of
// autograd from the first projection's output to the last one's, which keeps three tensors and runs
// the rest again.
#include "cost_model/runtime/pytorch_layers/state_space.hpp"

namespace zeroplan {
namespace {

// Sizes of one rank's tokens.
struct MixerSizes {
  static constexpr std::int64_t bytes_in_fp32 = 4;
  const EagerShape& s;
  const StateSpaceSpec& m = *s.problem.model.state_space;
  const std::int64_t samples = s.problem.layout.micro_batch;
  const std::int64_t chunks = samples * ceil_div(s.tokens / samples, m.chunk);

  Bytes projected() const { return s.features(m.projected()); }
  Bytes features() const { return s.features(m.features()); }
  Bytes mixed() const { return s.features(m.mixed()); }
  Bytes time_steps() const { return s.features(m.heads); }
  /// One a head and token, with those that fill up a chunk.
  Bytes wide_rates() const { return Bytes{bytes_in_fp32 * m.heads * chunks * m.chunk}; }
  Bytes norm_statistics() const { return Bytes{bytes_in_fp32 * m.groups * s.tokens}; }
  Bytes states() const { return Bytes{s.token.element * state_elements() * chunks}; }
  Bytes wide_states() const { return Bytes{bytes_in_fp32 * state_elements() * chunks}; }
  Bytes last_states() const { return Bytes{bytes_in_fp32 * state_elements() * samples}; }
  Bytes pairs() const { return Bytes{bytes_in_fp32 * m.groups * chunks * m.chunk * m.chunk}; }
  Bytes wide_groups() const { return Bytes{bytes_in_fp32 * m.groups * m.state * s.tokens}; }
  Bytes norm_weight_parts() const { return Bytes{bytes_in_fp32 * multiprocessors * m.features()}; }
  /// In how many parts gradients of groups are summed over heads, and those of decays over tokens.
  std::int64_t splits() const { return state_space_splits(m, s.tokens, samples); }
  std::int64_t rate_parts() const {
    constexpr std::int64_t tokens_of_part = 32;
    return ceil_div(m.chunk, tokens_of_part);
  }

 private:
  std::int64_t state_elements() const { return m.features() * m.state; }
};

// All that the kernels of the backward pass allocate beside the gradients that they were given.
void write_scan_backward(BlockWriter& w, const MixerSizes& z) {
  const auto make = [&](std::string_view name, Bytes bytes) { return w.temporary(name, bytes); };
  const auto in_parts = [&](std::string_view parts_name, std::int64_t parts, std::string_view name,
                            Bytes bytes) {
    const Tensor all = make(parts_name, Bytes{parts * bytes.count()});
    const Tensor sum = make(name, bytes);
    w.free(all);
    return sum;
  };
  const Tensor given = make("time steps", z.time_steps());
  const Tensor steps = make("time steps in fp32", z.wide_rates());
  const Tensor decay = make("decay summed by chunk", z.wide_rates());
  const Tensor pairs = make("pairs of a chunk", z.pairs());
  const Tensor written = make("states of chunks in fp32", z.wide_states());
  const Tensor begun = make("states that chunks begin with, in fp32", z.wide_states());
  const Tensor last = make("last states", z.last_states());
  w.free(written);
  const Tensor of_chunks = make("gradients of states by chunk", z.wide_states());
  const Tensor of_states = make("gradients of states", z.states());
  const Tensor states = make("states that chunks begin with", z.states());
  w.free({of_chunks, begun});
  const Tensor of_steps = make("gradient of time steps in fp32", z.wide_rates());
  const Tensor after = make("decay gradient of chunks after", z.wide_rates());
  const Tensor of_written = in_parts("gradient of what is written, in parts", z.splits(),
                                     "gradient of what is written", z.wide_groups());
  const Tensor before = make("decay gradient of chunks before", z.wide_rates());
  const Tensor of_read = in_parts("gradient of what is read, in parts", z.splits(),
                                  "gradient of what is read", z.wide_groups());
  const Tensor of_pairs =
      in_parts("gradient of pairs, in parts", z.splits(), "gradient of pairs", z.pairs());
  const Tensor turned = make("decay gradient, turned", z.wide_rates());
  const Tensor summed = make("decay gradient, summed", z.wide_rates());
  w.free(turned);
  const Tensor turned_back = make("decay gradient, turned back", z.wide_rates());
  w.free(summed);
  const Tensor within = in_parts("decay gradient within chunks, in parts", z.rate_parts(),
                                 "decay gradient within chunks", z.wide_rates());
  w.free(make("decay gradient of other chunks", z.wide_rates()));
  w.free({steps, of_steps, of_written, of_read, last, given, decay, pairs, states, of_states, after,
          before, of_pairs, turned_back, within});
}

}  // namespace

std::vector<Tensor> tensors_of(const EagerStateSpace& t) {
  return {t.projected, t.scanned, t.statistics};
}

void write_state_space(EagerPass& pass, const EagerShape& s, EagerAttention& t) {
  const MixerSizes z{s};
  BlockWriter& w = pass.writer();
  EagerStateSpace& own = t.state_space;
  own.projected = pass.multiply({Module::in_proj}, "gate, features and time steps", z.projected());
  w.run(Module::convolution);
  const Tensor convolved = w.temporary("convolved", z.mixed());
  w.run(Module::state_scan);
  const Tensor steps = w.temporary("time steps in fp32", z.wide_rates());
  const Tensor decay = w.temporary("decay summed by chunk", z.wide_rates());
  const Tensor written = w.temporary("states of chunks in fp32", z.wide_states());
  const Tensor states = w.temporary("states that chunks begin with", z.states());
  const Tensor last = w.temporary("last states", z.last_states());
  w.free(written);
  const Tensor pairs = w.temporary("pairs of a chunk", z.pairs());
  own.scanned = pass.make("output of the scan", z.features());
  w.free(pairs);
  w.run(Module::gated_output);
  const Tensor normed = w.temporary("normalised and gated", z.features());
  own.statistics = pass.make("norm statistics", z.norm_statistics());
  t.result = pass.multiply({Module::o_proj}, "projection output", s.features(s.token.hidden));
  w.free({convolved, steps, decay, states, last, normed});
  pass.done(own.scanned);
  pass.done(own.statistics);
  pass.done(own.projected);
  pass.done(t.input);
}

Tensor write_state_space_backward(BlockWriter& w,
                                  const EagerShape& s,
                                  const EagerAttention& t,
                                  const OnGradient& on_gradient) {
  const MixerSizes z{s};
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
  write_scan_backward(w, z);
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
