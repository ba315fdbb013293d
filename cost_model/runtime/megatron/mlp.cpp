// What does the MLP half of a Megatron layer allocate? Front door: write_mlp_forward.
#include "cost_model/runtime/megatron/layer.hpp"

namespace zeroplan {

namespace {

NormTensors save_norm(BlockWriter& w, const MegatronShape& s, Bytes output) {
  return {.output = w.save("norm output", output),
          .statistics = w.save("norm statistics", s.norm_statistics())};
}

// Quantized before it is gathered (TransformerEngine pytorch/module/linear.py).
Tensor gather_input(BlockWriter& w, const MegatronShape& s, std::int64_t features, Beside beside) {
  if (!s.sequence_parallel()) return BlockWriter::none;
  const Bytes whole = s.linear_input(s.features(features));
  const Tensor gathered = w.temporary("gathered linear input", whole);
  w.call("tp", Collective::all_gather, whole, beside);
  return gathered;
}

}  // namespace

NormTensors write_norm(BlockWriter& w, const MegatronShape& s, Module module, Bytes output) {
  w.run(module);
  return save_norm(w, s, output);
}

NormTensors write_pre_mlp_norm(BlockWriter& w, const MegatronShape& s, LayerKind kind) {
  const Bytes output = has_experts(kind) ? s.router_input() : s.linear_input(s.residual());
  return s.norms().pre_mlp ? write_norm(w, s, Module::pre_mlp_norm, output)
                           : save_norm(w, s, output);
}

Tensor write_column_linear_input(BlockWriter& w, const MegatronShape& s, std::int64_t features) {
  return gather_input(w, s, features, s.beside_linear());
}

void write_weight_gradient(BlockWriter& w, const MegatronShape& s, std::int64_t elements) {
  if (!s.makes_weight_gradients()) return;
  const BlockWriter::WeightEvents of_weights(w);
  w.free(w.temporary("weight gradient", Bytes{s.token.element * elements}));
}

Tensor write_column_linear_backward(BlockWriter& w,
                                    const MegatronShape& s,
                                    Module linear,
                                    Tensor input,
                                    std::int64_t features,
                                    std::int64_t outputs) {
  // The weight gradient alone reads the input again.
  const auto gather = [&] {
    const BlockWriter::WeightEvents of_weights(w);
    return gather_input(w, s, features, s.beside_weights());
  };
  const Tensor gathered = gather();
  const Tensor whole = w.temporary("input gradient of the linear", s.features(features));
  w.run_linear_backward(linear);
  w.call("tp", s.sums(), s.partial(features), s.beside_weights());
  if (!s.sequence_parallel()) {
    write_weight_gradient(w, s, features * outputs);
    w.free_with_weights(input);
    return whole;
  }
  const Tensor reduced = w.temporary("reduced input gradient", s.rows(s.token.element * features));
  write_weight_gradient(w, s, features * outputs);
  w.free_with_weights(gathered);
  w.free(whole);
  w.free_with_weights(input);
  return reduced;
}

Tensor write_row_linear_forward(BlockWriter& w,
                                const MegatronShape& s,
                                Module linear,
                                std::string_view name,
                                Category category) {
  const Tensor whole = w.temporary("output before reduction", s.gathered());
  w.run(linear);
  const Tensor reduced = w.allocate(name, s.residual(), category);
  w.call("tp", s.sums(), s.parts(), s.beside_linear());
  w.free(whole);
  return reduced;
}

Tensor write_row_linear_backward(BlockWriter& w,
                                 const MegatronShape& s,
                                 Module linear,
                                 std::string_view name,
                                 std::int64_t features) {
  // Quantized before it is gathered, as a linear's input is.
  const Bytes whole = s.linear_input(s.gathered());
  const Tensor gathered = w.temporary("gathered output gradient", whole);
  w.call("tp", Collective::all_gather, whole, s.beside_linear());
  const Tensor input = w.temporary(name, s.features(features));
  w.run_linear_backward(linear);
  write_weight_gradient(w, s, features * s.token.hidden);
  w.free_with_weights(gathered);
  return input;
}

void free_with_weights(BlockWriter& w, const MegatronShape& s, Tensor tensor) {
  if (!s.narrows_waiting_operands() || tensor == BlockWriter::none) {
    return w.free_with_weights(tensor);
  }
  const Tensor operand =
      w.temporary("operand of a weight gradient", Bytes{w.bytes_of(tensor).count() / 2});
  w.free(tensor);
  w.free_with_weights(operand);
}

void free_output_gradient(BlockWriter& w, const MegatronShape& s, Tensor gradient) {
  s.sequence_parallel() ? w.free(gradient) : free_with_weights(w, s, gradient);
}

Tensor write_activation_input(BlockWriter& w,
                              const MegatronShape& s,
                              Tensor read,
                              bool of_checkpoint) {
  return s.narrows_activation_input(of_checkpoint)
             ? w.save("activation input in 8 bits", Bytes{w.bytes_of(read).count() / 2})
             : read;
}

Tensor widen_activation_input(BlockWriter& w,
                              const MegatronShape& s,
                              Tensor kept,
                              bool of_checkpoint) {
  const bool widened = s.narrows_activation_input(of_checkpoint) && !s.is_dualpipe();
  return w.temporary("activation input in 16 bits", widened ? 2 * w.bytes_of(kept) : Bytes{});
}

void write_linears_forward(BlockWriter& w, const MegatronShape& s, FeedForwardTensors& t) {
  const MlpSpec& mlp = s.problem.model.mlp;
  const std::size_t start = w.position();
  const Tensor gathered = write_column_linear_input(w, s, s.token.hidden);
  t.fc1_output = w.save("fc1 output", s.features((mlp.gated ? 2 : 1) * s.token.mlp));
  w.run(Module::fc1);
  w.free(gathered);
  const Tensor made = t.fc1_output;
  t.fc1_output = write_activation_input(w, s, made);
  t.activation_output = w.save("activation output", s.linear_input(s.features(s.token.mlp)));
  w.run(Module::activation);
  if (t.fc1_output != made) w.free(made);
  t.result = write_row_linear_forward(w, s, Module::fc2, "fc2 output");
  t.saved = w.saved_since(start);
}

FeedForwardTensors write_mlp_forward(BlockWriter& w, const MegatronShape& s) {
  FeedForwardTensors t{.norm = write_pre_mlp_norm(w, s, LayerKind::dense)};
  write_linears_forward(w, s, t);
  t.dropout_mask = w.save("hidden dropout mask", s.dropout_mask());
  return t;
}

Tensor write_mlp_backward(BlockWriter& w, const MegatronShape& s, const FeedForwardTensors& t) {
  const Tensor activation =
      write_row_linear_backward(w, s, Module::fc2, "activation gradient", s.token.mlp);
  w.free(t.dropout_mask);
  w.free_with_weights(t.activation_output);  // fc2's node is done before the activation's begins
  const std::int64_t branches = s.problem.model.mlp.gated ? 2 : 1;
  const Tensor input = widen_activation_input(w, s, t.fc1_output);
  const Tensor fc1 = w.temporary("fc1 output gradient", s.features(branches * s.token.mlp));
  w.run_backward(Module::activation);
  w.free(activation);
  w.free(input);
  w.free(t.fc1_output);
  const Tensor norm = write_column_linear_backward(w, s, Module::fc1, t.norm.output, s.token.hidden,
                                                   branches * s.token.mlp);
  free_with_weights(w, s, fc1);
  return norm;
}

}  // namespace zeroplan
