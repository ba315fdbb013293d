// What does one layer allocate and free under plain PyTorch? Front door: EagerLayer.
#include "cost_model/runtime/pytorch_layers/layer.hpp"

#include <utility>

namespace zeroplan {
namespace {

// Bytes of the absolute values that float8 run eagerly computes of the inputs and weights of its
// linears.
Bytes magnitudes(const EagerShape& s) {
  std::int64_t bytes = 0;
  for (const Weight& w : s.weights) {
    if (w.columns == 1) continue;
    const LocalWeight local = local_weight(w, s.problem);
    bytes += s.token.element * (local.columns * s.tokens + local.elements());
  }
  return Bytes{bytes};
}

bool casts(const EagerShape& s) {
  return is_quantized(s.problem.training.precision) || s.style.autocast;
}

}  // namespace

std::int64_t EagerShape::elements(std::string_view weight, bool expert) const {
  for (const Weight& w : weights) {
    if (w.name == weight && w.expert == expert) return local_weight(w, problem).elements();
  }
  return 0;
}

Tensor write_row_reduction(EagerPass& pass, const EagerShape& s, Tensor whole, bool read_again) {
  const bool saved = s.style.saves_reductions;
  const bool kept = saved && (read_again || !s.style.compiled);
  if (!saved || !pass.reuses()) send_parts(pass.writer(), s);
  if (!s.sequence_parallel()) return whole;
  const Tensor ordered = write_rank_order(pass.writer(), s);
  const Tensor reduced =
      kept ? pass.keep("reduced output", s.residual()) : pass.make("reduced output", s.residual());
  pass.writer().free(ordered);
  pass.drop(whole);
  return reduced;
}

void send_parts(BlockWriter& w, const EagerShape& s) {
  w.call("tp", s.sums(), s.parts(), s.beside_linear());
}

Tensor write_rank_order(BlockWriter& w, const EagerShape& s) {
  return w.temporary("parts in the ranks' order", s.style.orders_reduced ? s.gathered() : Bytes{});
}

void write_linear_gradients(BlockWriter& w,
                            const EagerShape& s,
                            Module linear,
                            const OnGradient& on_gradient,
                            bool expert) {
  on_gradient(w, name_of(linear), s.elements(name_of(linear), expert));
  w.run_linear_backward(linear);
}

void InputGradient::add(Tensor part) {
  ++parts_;
  if (widens_) {
    const Tensor wide = w_.temporary("part of the input gradient in fp32", 2 * bytes_);
    w_.free(part);
    parts_ == 1 ? void(sum_ = wide) : w_.free(wide);
    return;
  }
  if (parts_ == 1) {
    sum_ = part;
    return;
  }
  const Tensor before = sum_;
  if (parts_ == 2) {
    sum_ = w_.temporary("input gradient", bytes_);
    w_.free(before);
  }
  w_.free(part);
}

Tensor write_input_reduction(BlockWriter& w, const EagerShape& s, Tensor whole) {
  send_parts(w, s);
  if (!s.sequence_parallel()) return whole;
  if (s.style.joins_gathered) w.run_backward(Module::rank_order);
  const Tensor ordered = write_rank_order(w, s);
  const Tensor reduced = w.temporary("reduced input gradient", s.residual());
  w.free(ordered);
  w.free(whole);
  return reduced;
}

Tensor write_gathered_gradient(BlockWriter& w, const EagerShape& s, std::string_view name) {
  if (s.style.autocast) return w.temporary("16-bit output gradient", s.features(s.token.hidden));
  return write_gathered(w, s, [&] { return w.temporary(name, s.gathered_operand()); });
}

// Whether the backward pass of a half reads what the half read: its norm, but for a composite one,
// which keeps that in fp32; or without a norm its linears, which autocast gives 16 bits of it.
bool EagerLayer::keeps_stream() const {
  return s_.norms().input ? keeps_norm_input(s_) : !s_.style.autocast;
}

// A checkpoint keeps it as it is.
bool EagerLayer::reads_input() const {
  return s_.style.checkpoint != Checkpoint::none || keeps_stream();
}

// The norm after a half, where a layer has four and they are composite: it keeps the half's result,
// or that in fp32.
EagerNorm EagerLayer::write_after(EagerPass& pass, Tensor& result) const {
  if (!s_.norms().after) return {};
  pass.writer().run(Module::post_norm);
  if (!is_composite(s_)) return {};
  EagerNorm norm = write_eager_norm(pass, s_, half_bytes(), s_.norm_statistics());
  if (widens_norm_input(s_)) {
    pass.drop(result);
  } else {
    norm.widened = result;
    pass.done(norm.widened);
  }
  result = std::exchange(norm.output, BlockWriter::none);
  return norm;
}

EagerLayer::Halves EagerLayer::write(EagerPass& pass) {
  // Operators of their own: a checkpoint that keeps a product makes its operands again.
  if (casts(s_)) pass.writer().run(Module::casts);
  Halves t;
  if (has_mixer(kind_)) {
    t.attention = write_eager_attention(pass, s_, kind_);
    t.after_attention = write_after(pass, t.attention.result);
  }
  const bool parallel = s_.problem.model.parallel_residual;
  if (!has_both_halves(kind_)) {
    if (has_mixer(kind_) && pass.is_checkpoint()) pass.drop(tensors_of(t.attention));
    if (has_feed_forward(kind_)) t.feed_forward = write_eager_feed_forward(pass, s_, kind_);
    pass.writer().run(Module::residual);
    return t;
  }
  if (!parallel) {
    // The compiler writes a sum over the operand that nothing else reads.
    if (s_.style.compiled) pass.drop(t.attention.result);
    t.middle = pass.make("attention residual", s_.residual());
  }
  pass.writer().run(Module::residual);
  if (!parallel && !s_.style.compiled) pass.drop(t.attention.result);
  if (pass.is_checkpoint()) pass.drop(tensors_of(t.attention));
  t.feed_forward = write_eager_feed_forward(pass, s_, kind_);
  if (parallel) {
    const Tensor both = pass.writer().temporary("sum of both halves", s_.residual());
    for (const Tensor half : {t.attention.result, t.feed_forward.result}) pass.drop(half);
    t.feed_forward.result = both;
  }
  t.after_feed_forward = write_after(pass, t.feed_forward.result);
  pass.writer().run(Module::residual);
  return t;
}

void EagerLayer::forward(BlockWriter& w) {
  const std::size_t first = w.position();
  const bool checkpointed = s_.style.checkpoint != Checkpoint::none;
  EagerPass pass(w, checkpointed ? EagerPass::Keeps::checkpoint : EagerPass::Keeps::saved,
                 s_.style.checkpoint, cache_);
  if (s_.style.keeps_magnitudes && s_.style.checkpoint == Checkpoint::operators) {
    pass.keep("absolute values of float8 operands", magnitudes(s_));
  }
  t_ = write(pass);
  if (s_.style.compiled) pass.drop(result());
  w.allocate(Block::output);
  if (!s_.style.compiled) pass.drop(result());
  if (checkpointed) {
    pass.drop(tensors_of(t_.feed_forward));
    w.free(t_.middle);
  } else if (!reads_input()) {
    w.free(t_.middle);
    t_.middle = BlockWriter::none;
    w.free(Block::input);
  }
  if (s_.style.compiled) w.hold_for_reuse(first);
}

void EagerLayer::backward(BlockWriter& w, const OnGradient& on_gradient) {
  const std::size_t first = w.position();
  // A reduction saves nothing: its gradient is gathered before the checkpoint is asked for more.
  // Nothing narrows that of experts that gave fp32 under autocast.
  const bool as_it_is = s_.style.autocast && has_experts(kind_) && !has_shared_experts(s_);
  const auto gather = [&] {
    return as_it_is ? BlockWriter::none
                    : write_gathered_gradient(w, s_, "gathered output gradient");
  };
  const bool gathers_first = has_feed_forward(kind_) && !s_.style.compiled && !s_.norms().after;
  Tensor whole = gathers_first ? gather() : BlockWriter::none;
  if (s_.style.checkpoint != Checkpoint::none) {
    EagerPass pass(w, EagerPass::Keeps::rebuilt, s_.style.checkpoint, cache_);
    if (s_.style.keeps_magnitudes && s_.style.checkpoint == Checkpoint::operators) {
      w.free(pass.keep("absolute values of float8 operands", magnitudes(s_)));
    }
    t_ = write(pass);
    const Tensor output =
        w.temporary("rebuilt output", s_.style.compiled ? Bytes{} : s_.residual());
    pass.drop(result());
    w.free(output);
    if (!keeps_stream()) {
      w.free(t_.middle);
      t_.middle = BlockWriter::none;
    }
  }
  // The residual's gradient is one storage all the way: what a half gives is added to it in place.
  const auto norm_backward = [&](Module module, const EagerNorm& norm, Tensor output_gradient) {
    w.run_backward(module);
    w.free(write_eager_norm_backward(w, norm, s_.residual(), output_gradient));
  };
  // What a half's own norm gives it; the residual's gradient stays.
  const auto after = [&](const EagerNorm& norm) {
    w.run_backward(Module::residual);
    if (s_.norms().after) w.run_backward(Module::post_norm);
    if (!norm.composite) return BlockWriter::none;
    return write_eager_norm_backward(w, norm, half_bytes(), BlockWriter::none);
  };
  Tensor of_mlp = BlockWriter::none;  // the norm's output gradient, where both halves read it
  if (has_feed_forward(kind_)) {
    const Tensor own = after(t_.after_feed_forward);
    if (!gathers_first) whole = gather();
    const Tensor input =
        write_eager_feed_forward_backward(w, s_, kind_, t_.feed_forward, on_gradient, whole);
    w.free(own);
    if (s_.norms().pre_mlp) {
      norm_backward(Module::pre_mlp_norm, t_.feed_forward.norm, input);
    } else if (s_.norms().shared()) {
      of_mlp = input;
    } else {
      w.free(input);
    }
    w.free(t_.middle);
  }
  if (has_mixer(kind_)) {
    const Tensor own = after(t_.after_attention);
    const Tensor input = write_eager_attention_backward(w, s_, kind_, t_.attention, on_gradient);
    w.free(of_mlp);
    w.free(own);
    if (s_.norms().input) {
      norm_backward(Module::input_norm, t_.attention.norm, input);
    } else {
      w.free(input);
    }
  }
  if (casts(s_)) w.run_backward(Module::casts);
  // What the second projection's weight gradient reads, unless it gathered it.
  s_.sequence_parallel() ? w.free(Block::output_grad) : w.free_with_weights(Block::output_grad);
  w.allocate(Block::input_grad);
  on_gradient(w, "norm", s_.elements("norm") * norms_of(s_.problem.model, kind_));
  if (reads_input()) w.free(Block::input);
  if (s_.style.compiled) w.hold_for_reuse(first);
}

}  // namespace zeroplan
