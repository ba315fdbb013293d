// What does the attention half of nanotron's layer allocate and free? Front doors:
// NanotronLayer::write_attention, write_attention_backward.
#include "cost_model/runtime/nanotron/layer.hpp"
#include "cost_model/runtime/nanotron/linear.hpp"

namespace zeroplan {

void NanotronLayer::write_first_norm(BlockWriter& w) {
  if (!packs_) {
    t_.first_statistics = w.save("norm statistics", s_.norm_statistics());
    t_.first_norm = w.save("norm output", s_.residual());
    return;
  }
  std::vector<Tensor> none;
  EagerPass pass(w, EagerPass::Keeps::saved, Checkpoint::none, none);
  t_.first = write_eager_norm(pass, s_, s_.residual(), s_.norm_statistics());
  t_.first_norm = t_.first.output;
}

// Attention's output is ordered by sample, what the projection multiplies by token: of several
// samples each product makes a copy.
Tensor NanotronLayer::write_transposed(BlockWriter& w) const {
  const bool copied = !packs_ && s_.problem.layout.micro_batch > 1;
  return w.temporary("projection input", copied ? s_.features(s_.token.query) : Bytes{});
}

Tensor NanotronLayer::write_attention(BlockWriter& w) {
  const std::int64_t query = s_.token.query;
  const std::int64_t key_value = s_.token.key_value;
  write_first_norm(w);
  const ColumnInput input = write_column_input(w, s_, t_.first_norm);
  t_.first_norm = input.kept;
  // Packed, all three are views of it, turned in place. Else keys and values are copied, and
  // queries too where there are groups.
  t_.projected = w.save("mixed qkv", s_.features(query + 2 * key_value));
  const bool copies = !packs_ && grouped();
  t_.queries = w.save("queries", copies ? s_.features(query) : Bytes{});
  t_.keys_values = w.save("keys and values", packs_ ? Bytes{} : s_.features(2 * key_value));
  t_.output = w.save("attention output", s_.features(query));
  t_.log_sum_exp = w.save("log-sum-exp", Bytes{4 * s_.token.heads * s_.tokens});
  if (copies) {
    w.free(t_.projected);
    t_.projected = BlockWriter::none;
  }
  const Tensor transposed = write_transposed(w);
  run(w, modules_.attention);
  const Tensor result = write_row_linear(w, s_, "projection output");
  w.free(transposed);
  w.free(input.argument);
  return result;
}

// The gradient of what the projection gave, from those of the three, which the kernel gave.
Tensor NanotronLayer::write_mixed_gradient(BlockWriter& w, Tensor kernel) const {
  const Bytes all = s_.features(s_.token.query + 2 * s_.token.key_value);
  if (packs_) {  // each view's gradient is as large as what it views; the second is added in place
    const Tensor mixed = w.temporary("mixed qkv gradient", all);
    const Tensor part = w.temporary("mixed qkv gradient of a view", all);
    w.free(kernel);
    w.free(part);
    w.free(t_.projected);
    return mixed;
  }
  const Tensor stacked = w.temporary("stacked gradients", all);
  for (const Tensor tensor : {kernel, t_.keys_values, t_.queries}) w.free(tensor);
  const Tensor mixed = w.temporary("mixed qkv gradient", all);
  for (const Tensor tensor : {stacked, t_.projected}) w.free(tensor);
  return mixed;
}

void NanotronLayer::write_attention_backward(BlockWriter& w) {
  const Bytes query = s_.features(s_.token.query);
  write_gather(w, s_);
  const Tensor output = w.temporary("attention output gradient", query);
  const Tensor transposed = write_transposed(w);
  w.put(nanotron_gradient, gradient_of("proj"));
  w.free(transposed);
  const Tensor kernel = w.temporary("query, key and value gradients",
                                    s_.features(s_.token.query + 2 * s_.token.key_value));
  const Tensor sums = w.temporary("fp32 query gradient and row sums",
                                  2 * query + Bytes{4 * s_.token.heads * s_.tokens});
  w.free(w.temporary("key and value gradients a head", grouped() ? 2 * query : Bytes{}));
  for (const Tensor tensor : {sums, output, t_.output, t_.log_sum_exp}) w.free(tensor);
  const Tensor mixed = write_mixed_gradient(w, kernel);
  w.put(nanotron_gradient, gradient_of("qkv"));
  run_backward(w, modules_.attention);
  w.run_backward(Module::gradient_sum);
  const Tensor input = write_input_gradient(w, s_, mixed, t_.first_norm);
  if (packs_) {
    w.free(write_eager_norm_backward(w, t_.first, s_.residual(), input));
  } else {
    write_fused_norm_backward(w, s_, input, t_.first_statistics);
  }
}

}  // namespace zeroplan
