// What does one layer of nanotron allocate and free? Front door: NanotronLayer.
#include "cost_model/runtime/nanotron/layer.hpp"

namespace zeroplan {
namespace {

// A row-parallel linear's output, whole before its sum is scattered.
Tensor write_row_linear(BlockWriter& w, const LayerShape& s, std::string_view name) {
  const Tensor whole = w.sent("output before reduction", s.gathered());
  w.call("tp", s.sums(), s.parts());
  const Tensor reduced = w.temporary(name, s.residual());
  w.free(whole);
  return reduced;
}

// What a linear or its gradients need of all tokens goes into a buffer that stays.
void write_gather(BlockWriter& w, const LayerShape& s) {
  w.call("tp", Collective::all_gather, s.gathered());
}

// Beside a product that does not need it: the input's gradients travel while the weight's are
// computed, the input while the input's gradients are (parallel/tensor_parallel/functional.py).
void write_beside(BlockWriter& w, Collective what, Bytes payload) {
  w.call("tp", what, payload, Beside::products);
}

// From the gradient of a column-parallel linear's output back through the norm before it. The
// result is added to the residual's gradient in place.
void write_input_gradient(
    BlockWriter& w, const LayerShape& s, Tensor output_gradient, Tensor norm, Tensor statistics) {
  const bool reduces = s.sequence_parallel();
  const Bytes bytes = s.features(s.token.hidden);
  const Tensor whole = reduces ? w.sent("input gradient of the linear", bytes)
                               : w.temporary("input gradient of the linear", bytes);
  write_beside(w, Collective::all_gather, s.gathered());
  w.free(output_gradient);
  write_beside(w, s.sums(), s.parts());
  Tensor input = whole;
  if (reduces) {
    input = w.temporary("reduced input gradient", s.residual());
    w.free(whole);
  }
  w.free(norm);
  const Tensor residual = w.temporary("norm input gradient", s.residual());
  w.free(input);
  w.free(statistics);
  w.free(residual);
}

}  // namespace

Bytes NanotronLayer::gradient_of(std::string_view module) const {
  std::int64_t elements = 0;
  for (const Weight& w : weights_) {
    if (w.module == module) elements += local_weight(w, s_.problem).elements();
  }
  return Bytes{s_.token.element * elements};
}

NanotronLayer::Locals NanotronLayer::write(BlockWriter& w) {
  const std::int64_t query = s_.token.query;
  const std::int64_t key_value = s_.token.key_value;
  const bool grouped = key_value < query;
  t_.first_statistics = w.save("norm statistics", s_.norm_statistics());
  t_.first_norm = w.save("norm output", s_.residual());
  write_gather(w, s_);
  // Without groups the queries are a view of the projection's output, and rotated in place.
  t_.projected = w.save("mixed qkv", s_.features(query + 2 * key_value));
  t_.queries = w.save("queries", grouped ? s_.features(query) : Bytes{});
  t_.keys_values = w.save("keys and values", s_.features(2 * key_value));
  t_.output = w.save("attention output", s_.features(query));
  t_.log_sum_exp = w.save("log-sum-exp", Bytes{4 * s_.token.heads * s_.tokens});
  if (grouped) {
    w.free(t_.projected);
    t_.projected = BlockWriter::none;
  }
  const bool copied = s_.problem.layout.micro_batch > 1;
  t_.transposed = w.save("projection input", copied ? s_.features(query) : Bytes{});
  run(w, modules_.attention);
  const Tensor attention_result = write_row_linear(w, s_, "projection output");
  t_.middle = w.save("attention residual", s_.residual());
  t_.second_statistics = w.save("norm statistics", s_.norm_statistics());
  t_.second_norm = w.save("norm output", s_.residual());
  write_gather(w, s_);
  t_.gate_up = w.save("gate and up", s_.features(2 * s_.token.mlp));
  t_.activated = w.save("activated gate", s_.features(s_.token.mlp));
  t_.product = w.save("activation output", s_.features(s_.token.mlp));
  run(w, modules_.feed_forward);
  return {attention_result, write_row_linear(w, s_, "down projection output")};
}

void NanotronLayer::free_saved(BlockWriter& w) const {
  for (const Tensor tensor :
       {t_.first_statistics, t_.first_norm, t_.projected, t_.queries, t_.keys_values, t_.output,
        t_.log_sum_exp, t_.transposed, t_.middle, t_.second_statistics, t_.second_norm, t_.gate_up,
        t_.activated, t_.product}) {
    w.free(tensor);
  }
}

void NanotronLayer::forward(BlockWriter& w) {
  const Locals locals = write(w);
  w.allocate(Block::output);
  w.free(locals.result);
  w.free(locals.attention_result);
  if (recomputed()) free_saved(w);
}

void NanotronLayer::backward(BlockWriter& w) {
  if (recomputed()) {
    const Locals locals = write(w);
    w.free(locals.result);
    w.free(locals.attention_result);
  }
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
  write_input_gradient(w, s_, both, t_.second_norm, t_.second_statistics);
  w.free(t_.middle);

  const Bytes query = s_.features(s_.token.query);
  const Bytes all = s_.features(s_.token.query + 2 * s_.token.key_value);
  write_gather(w, s_);
  w.put(nanotron_gradient, gradient_of("proj"));
  const Tensor output = w.temporary("attention output gradient", query);
  w.free(t_.transposed);
  const Tensor kernel = w.temporary("query, key and value gradients", all);
  w.free(w.temporary("fp32 query gradient and row sums",
                     2 * query + Bytes{4 * s_.token.heads * s_.tokens}));
  for (const Tensor tensor : {output, t_.output, t_.log_sum_exp}) w.free(tensor);
  const Tensor stacked = w.temporary("stacked gradients", all);
  for (const Tensor tensor : {kernel, t_.keys_values, t_.queries}) w.free(tensor);
  const Tensor mixed = w.temporary("mixed qkv gradient", all);
  for (const Tensor tensor : {stacked, t_.projected}) w.free(tensor);
  w.put(nanotron_gradient, gradient_of("qkv"));
  run_backward(w, modules_.attention);
  w.run_backward(Module::gradient_sum);
  write_input_gradient(w, s_, mixed, t_.first_norm, t_.first_statistics);
  w.free(Block::output_grad);
  w.allocate(Block::input_grad);
  w.free(Block::input);
}

}  // namespace zeroplan
