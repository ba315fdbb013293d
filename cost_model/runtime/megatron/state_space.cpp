// What does a state space allocate as a layer of Megatron's? Front door: write_state_space_forward.
//
// Sources: Megatron-LM @d98e8a64dd core/ssm/{mamba_layer,mamba_mixer,mamba_context_parallel}.py;
// state-spaces/mamba @e9594ce1 mamba_ssm/ops/triton/layernorm_gated.py.
#include <array>
#include <ranges>

#include "cost_model/runtime/megatron/head_exchange.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "cost_model/runtime/state_scan.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t chunk = 128;  // core/ssm/mamba_mixer.py, whatever a model's file says

// Sizes on one rank. The scan has its heads of all tokens; the projections and the norm have those
// of all ranks of context parallelism, of its own tokens.
struct MixerSizes {
  StateScan scan;
  StateScan norm;

  explicit MixerSizes(const MegatronShape& s)
      : scan{.mixer = local_state_space(s.problem),
             .element = s.token.element,
             .tokens = s.tokens * s.problem.layout.cp,
             .samples = s.problem.layout.micro_batch,
             .gates = true},
        norm{scan} {
    scan.mixer.chunk = chunk;
    norm.tokens = s.tokens;
    norm.mixer.heads *= s.problem.layout.cp;
    norm.mixer.groups = ceil_div(s.problem.model.state_space->groups, s.problem.layout.tp);
  }

  bool turns_samples() const { return scan.samples > 1; }
  bool exchanges() const { return scan.tokens > norm.tokens; }
  /// Gate, features, what groups write and read, and time steps, which are sent one by one.
  std::array<Bytes, 5> parts() const {
    const StateSpaceSpec& m = scan.mixer;
    const std::int64_t group = m.groups * m.state;
    const auto width = [&](std::int64_t w) { return scan.each(w); };
    return {width(m.features()), width(m.features()), width(group), width(group), width(m.heads)};
  }
  /// Of this rank's channels, which are copied out of those of all.
  Bytes filters() const {
    const StateSpaceSpec& m = scan.mixer;
    return Bytes{scan.element * m.mixed() * (m.convolution + 1)};
  }
};

// What the scan reads, in the order of tokens.
Tensor write_projection(BlockWriter& w, const MegatronShape& s, const MixerSizes& z) {
  const std::string_view name = "gate, features and time steps";
  const Tensor gathered = write_column_linear_input(w, s, s.token.hidden);
  if (!z.exchanges()) {
    const Tensor projected = w.save(name, z.scan.projected());
    w.run(Module::in_proj);
    w.free(gathered);
    return projected;
  }
  const Tensor here = w.temporary("projected here", z.norm.projected());
  w.run(Module::in_proj);
  w.free(gathered);
  TensorList received;
  for (const Bytes part : z.parts()) {
    received.push_back(exchanged(w, w.temporary("heads by rank", part), part));
  }
  const Tensor joined = w.temporary("projected, joined", z.scan.projected());
  const Tensor projected = w.save(name, z.scan.projected());
  w.free({joined});
  w.free(received);
  w.free(here);
  return projected;
}

// The gradient of what was projected, on the rank that projected it.
Tensor write_projection_order_backward(BlockWriter& w, const MixerSizes& z, Tensor all) {
  if (z.turns_samples()) {
    all = copied(w, "projected gradient by token", all, z.scan.projected());
  }
  if (!z.exchanges()) return all;
  all = copied(w, "projected gradient by rank", all, z.scan.projected());
  TensorList received;
  for (const Bytes part : z.parts() | std::views::reverse) {
    const Tensor got = exchanged(w, w.temporary("gradient of heads", part), part);
    received.push_back(copied(w, "gradient of heads of all ranks", got, part));
  }
  w.free(all);
  const Tensor joined = w.temporary("projected gradient", z.norm.projected());
  w.free(received);
  return joined;
}

// The gated output, by sample and on the scan's rank, as the norm reads it.
Tensor write_output_order(BlockWriter& w, const MixerSizes& z, Tensor gated) {
  const Bytes bytes = z.scan.features();
  const auto replace = [&](std::string_view name, const TensorList& before) {
    const Tensor made = w.save(name, bytes);
    w.free(before);
    return made;
  };
  if (z.turns_samples()) gated = replace("gated output by token", {gated});
  if (!z.exchanges()) return gated;
  const Tensor by_rank = w.temporary("gated output by rank", bytes);
  const Tensor received = w.temporary("heads of other ranks", bytes);
  w.call("cp", Collective::all_to_all, bytes);
  return replace("gated output of all heads", {received, by_rank, gated});
}

Tensor write_output_order_backward(BlockWriter& w, const MixerSizes& z, Tensor gated) {
  const Bytes bytes = z.scan.features();
  if (z.exchanges()) {
    gated = exchanged(w, copied(w, "gated output's gradient by rank", gated, bytes), bytes);
    gated = copied(w, "gated output's gradient of all tokens", gated, bytes);
  }
  return z.turns_samples() ? copied(w, "gated output's gradient by sample", gated, bytes) : gated;
}

}  // namespace

AttentionTensors write_state_space_forward(BlockWriter& w, const MegatronShape& s) {
  const MixerSizes z(s);
  AttentionTensors t{.norm = write_norm(w, s, Module::input_norm, s.linear_input(s.residual()))};
  StateSpaceTensors& own = t.state_space;
  own.projected = write_projection(w, s, z);
  // The layer's variable holds what was projected until the half returns.
  Tensor by_token = BlockWriter::none;
  if (z.turns_samples()) {
    by_token = own.projected;
    own.projected = w.save("projected, by sample", z.scan.projected());
  }
  if (z.exchanges()) own.parameters = {w.save("filters of this rank", z.filters())};
  const TensorList within = write_state_scan(w, z.scan, [&] {
    own.gated = w.save("gated output of the scan", z.scan.features());
    own.scanned = w.save("output of the scan", z.scan.features());
  });
  w.free(within);
  own.gated = write_output_order(w, z, own.gated);
  w.run(Module::gated_output);
  const bool quantized = is_quantized(s.problem.training.precision);
  const Bytes features = z.norm.features();
  const Tensor normed = w.allocate("normalised output", features,
                                   quantized ? Category::temporaries : Category::activations);
  own.norm_statistics = w.save("norm statistics of the output", z.norm.norm_statistics());
  t.projection_input = quantized ? w.save("projection input", s.linear_input(features)) : normed;
  t.result = write_row_linear_forward(w, s, Module::proj, "projection output");
  if (quantized) w.free(normed);
  w.free(by_token);
  t.dropout_mask = w.save("hidden dropout mask", s.dropout_mask());
  return t;
}

Tensor write_state_space_backward(BlockWriter& w,
                                  const MegatronShape& s,
                                  const AttentionTensors& t) {
  const MixerSizes z(s);
  const StateSpaceTensors& own = t.state_space;
  const Tensor output = write_row_linear_backward(w, s, Module::proj, "normalised output gradient",
                                                  z.norm.mixer.features());
  w.free(t.dropout_mask);
  w.free_with_weights(t.projection_input);
  Tensor gated = w.temporary("gradient of the gated output", z.norm.features());
  w.free(w.temporary("norm weight gradient in parts", z.norm.norm_weight_parts()));
  w.run_backward(Module::gated_output);
  w.free({output, own.gated, own.norm_statistics});
  gated = write_output_order_backward(w, z, gated);
  const Tensor convolved = w.temporary("convolved", z.scan.mixed());
  const Tensor projected = w.temporary("gradient of all that was projected", z.scan.projected());
  const Tensor mixed = w.temporary("gradient of what was convolved", z.scan.mixed());
  w.run_backward(Module::state_scan);
  write_state_scan_backward(w, z.scan);
  w.run_backward(Module::convolution);
  w.free({convolved, mixed, gated, own.projected, own.scanned});
  w.free(own.parameters);
  const Tensor all = write_projection_order_backward(w, z, projected);
  const Tensor norm = write_column_linear_backward(w, s, Module::in_proj, t.norm.output,
                                                   s.token.hidden, z.norm.mixer.projected());
  free_with_weights(w, s, all);
  return norm;
}

}  // namespace zeroplan
