// What does one layer of nanotron allocate and free? Front door: NanotronLayer.
#include "cost_model/runtime/nanotron/layer.hpp"

#include "cost_model/runtime/nanotron/linear.hpp"

namespace zeroplan {

bool runs_qwen_class(const Problem& problem) {
  return problem.runtime.nanotron.version == NanotronVersion::of_2025_06;
}

bool logs_attention(const Problem& problem) {
  return runs_qwen_class(problem) && problem.runtime.nanotron.log_attn_probs;
}

NanotronLayer::NanotronLayer(const LayerShape& shape, const std::vector<Weight>& weights)
    : packs_(runs_qwen_class(shape.problem)),
      s_{shape, {.composite_norm = packs_}, weights},
      modules_(layer_modules(shape.problem, LayerKind::dense)),
      weights_(weights) {}

Bytes NanotronLayer::gradient_of(std::string_view module) const {
  std::int64_t elements = 0;
  for (const Weight& w : weights_) {
    if (w.module == module) elements += local_weight(w, s_.problem).elements();
  }
  return Bytes{s_.token.element * elements};
}

NanotronLayer::Locals NanotronLayer::write(BlockWriter& w) {
  const Tensor attention_result = write_attention(w);
  t_.middle = w.save("attention residual", s_.residual());
  t_.second_statistics = w.save("norm statistics", s_.norm_statistics());
  const Tensor norm = w.save("norm output", s_.residual());
  const ColumnInput input = write_column_input(w, s_, norm);
  t_.mlp_input = input.kept;
  t_.gate_up = w.save("gate and up", s_.features(2 * s_.token.mlp));
  t_.activated = w.save("activated gate", s_.features(s_.token.mlp));
  t_.product = w.save("activation output", s_.features(s_.token.mlp));
  run(w, modules_.feed_forward);
  const Tensor result = write_row_linear(w, s_, "down projection output");
  w.free(input.argument);
  return {attention_result, result};
}

void NanotronLayer::free_saved(BlockWriter& w) const {
  for (const Tensor tensor :
       {t_.first.widened, t_.first.normalised, t_.first.statistics, t_.first_statistics,
        t_.first_norm, t_.projected, t_.queries, t_.keys_values, t_.output, t_.log_sum_exp,
        t_.middle, t_.second_statistics, t_.mlp_input, t_.gate_up, t_.activated, t_.product}) {
    w.free(tensor);
  }
}

void NanotronLayer::forward(BlockWriter& w) {
  const Locals locals = write(w);
  w.allocate(Block::output);
  w.free(locals.result);
  w.free(locals.attention_result);
  if (recomputed()) free_saved(w);
  if (!reads_input()) w.free(Block::input);
}

void NanotronLayer::keep_for_log(BlockWriter& w) const {
  if (recomputed() && logs_attention(s_.problem)) w.put(nanotron_logged_graph, s_.residual());
}

void NanotronLayer::write_feed_forward_backward(BlockWriter& w) {
  const Bytes width = s_.features(s_.token.mlp);
  write_gather(w, s_);
  w.put(nanotron_gradient, gradient_of("fc2"));
  const Tensor product = w.temporary("activation output gradient", width);
  w.free(t_.product);
  const Tensor activated = w.temporary("activated gate gradient", width);
  const Tensor up = w.temporary("up gradient", width);
  w.free(product);
  w.free(t_.activated);
  const Tensor gate = w.temporary("gate gradient", width);
  w.free(activated);
  const Tensor both = w.temporary("gate and up gradient", 2 * width);
  for (const Tensor tensor : {gate, up, t_.gate_up}) w.free(tensor);
  w.put(nanotron_gradient, gradient_of("fc1"));
  run_backward(w, modules_.feed_forward);
  const Tensor input = write_input_gradient(w, s_, both, t_.mlp_input);
  write_fused_norm_backward(w, s_, input, t_.second_statistics);
  w.free(t_.middle);
}

void NanotronLayer::backward(BlockWriter& w) {
  Tensor again = BlockWriter::none;  // the output, which a variable of the checkpoint names
  if (recomputed()) {
    const Locals locals = write(w);
    again = w.temporary("output, once more", s_.residual());
    w.free(locals.result);
    w.free(locals.attention_result);
  }
  write_feed_forward_backward(w);
  write_attention_backward(w);
  w.free(again);
  w.free(Block::output_grad);
  keep_for_log(w);  // the gradient, as if it were that of this layer's input
  w.allocate(Block::input_grad);
  if (reads_input()) w.free(Block::input);
  keep_for_log(w);
}

}  // namespace zeroplan
