// What does the MLP or expert half of a layer allocate? Front door: write_eager_feed_forward.
#include <utility>

#include "cost_model/runtime/pytorch_layers/experts.hpp"

namespace zeroplan {

EagerFeedForward write_eager_feed_forward(EagerPass& pass, const EagerShape& s, LayerKind kind) {
  EagerFeedForward t;
  if (s.norms().pre_mlp) {
    pass.writer().run(Module::pre_mlp_norm);
    t.norm = write_stream_norm(pass, s);
  }
  if (!s.norms().shared()) {
    // Where one projection makes queries, keys and values, one makes gate and up.
    const std::int64_t projections = dense_mlp(s).gated && !s.style.fused_qkv ? 2 : 1;
    t.input = write_linear_input(pass, s, t.norm,
                                 has_experts(kind) ? linears_before_experts(s) : projections);
  }  // else it reads what attention reads, whose it is
  const Tensor whole =
      has_experts(kind) ? write_experts(pass, s, t) : write_mlp(pass, s, dense_mlp(s), t.mlp);
  pass.done(t.input);
  if (has_experts(kind) && !keeps_expert_input(s)) {
    pass.drop(std::exchange(t.input, BlockWriter::none));
  }
  t.result = write_row_reduction(pass, s, whole, false);
  drop_argument(pass, t.norm);
  return t;
}

Tensor write_eager_feed_forward_backward(BlockWriter& w,
                                         const EagerShape& s,
                                         LayerKind kind,
                                         const EagerFeedForward& t,
                                         const OnGradient& on_gradient,
                                         Tensor whole) {
  Tensor input;
  if (has_experts(kind)) {
    input = write_experts_backward(w, s, t, on_gradient);
    w.free_with_weights(whole);
  } else {
    input = write_mlp_backward(w, s, dense_mlp(s), t.mlp, on_gradient, t.input, whole);
  }
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
  list.push_back(t.weighed);
  list.push_back(t.shared_output);
  return list;
}

}  // namespace zeroplan
