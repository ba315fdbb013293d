// What do output layer and loss allocate? Front door: EagerHead.
#include "cost_model/program/eager/head.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;

Bytes wide(std::int64_t logits) {
  return Bytes{fp32 * logits};
}

}  // namespace

// Tied or not, the output layer's weight is as large as the word embedding.
LocalWeight EagerHead::weight() const {
  return local_weight(embedding_weights(s_.problem.model).front(), s_.problem);
}

std::int64_t EagerHead::logits() const {
  const Problem& p = s_.problem;
  const LocalWeight local = weight();
  // Without loss parallelism every tensor-parallel rank gathers all of them.
  const bool whole = p.layout.tp > 1 && loss_ != LossCode::parallel;
  return s_.tokens * (whole ? local.rows * p.layout.tp : local.rows);
}

void EagerHead::forward(BlockWriter& w) {
  std::vector<Tensor> cache;
  EagerPass pass(w, EagerPass::Keeps::saved, Checkpoint::none, cache);
  norm_ = write_eager_norm(pass, s_, s_.residual(), s_.norm_statistics());
  hidden_ = write_linear_input(pass, s_, norm_);
  if (fused_chunks()) return;
  logits_ = w.save("logits", Bytes{s_.token.element * logits()});
}

// More than these differ in nothing that can be seen.
std::int64_t EagerHead::logit_parts() const {
  constexpr std::int64_t most = 64;
  return std::min(chunks_, most);
}

// Head and loss of one part, forward and backward; gives the gradient of its logits.
Tensor EagerHead::chunk(BlockWriter& w, std::int64_t part) {
  const Tensor made = w.temporary("logits of a part", Bytes{s_.token.element * part});
  const Tensor upcast = w.temporary("fp32 logits", wide(part));
  const Tensor result = w.temporary("log-softmax", wide(part));
  w.free(upcast);
  w.free(made);
  const Tensor picked = w.temporary("loss gradient", wide(part));
  const Tensor input = w.temporary("fp32 logits gradient", wide(part));
  w.free(picked);
  w.free(result);
  const Tensor gradient = w.temporary("logits gradient", Bytes{s_.token.element * part});
  w.free(input);
  return gradient;
}

void EagerHead::loss_forward(BlockWriter& w, const OnGradient& on_gradient) {
  const std::int64_t e = logits();
  const Bytes narrow{s_.token.element * e};
  switch (loss_) {
    case LossCode::fp32_logits: {
      // The model's own .float(): the loop's variable holds the result, over the one before it.
      saved_.push_back(w.save("fp32 logits", wide(e)));
      w.free(logits_);
      saved_.push_back(w.save("log-softmax", wide(e)));
      break;
    }
    case LossCode::plain:
    case LossCode::huggingface: {
      const Tensor upcast = w.temporary("fp32 logits", wide(e));
      saved_.push_back(w.save("log-softmax", wide(e)));
      w.free(upcast);
      if (loss_ == LossCode::plain) {
        w.free(logits_);
      } else {
        saved_.push_back(logits_);  // in the model's output object
      }
      break;
    }
    case LossCode::parallel: {
      const Tensor upcast = w.temporary("fp32 logits", wide(e));
      const Tensor shifted = w.temporary("shifted logits", wide(e));
      w.free(w.temporary("exponentials", wide(e)));
      saved_.push_back(w.save("log-softmax", wide(e)));
      w.free(shifted);
      w.free(upcast);
      w.free(logits_);
      break;
    }
    case LossCode::chunked_logits: {
      for (std::int64_t i = 0; i < logit_parts(); ++i) {
        const Tensor upcast =
            w.temporary("fp32 logits of a part", wide(ceil_div(e, logit_parts())));
        saved_.push_back(w.save("log-softmax of a part", wide(ceil_div(e, logit_parts()))));
        w.free(upcast);
      }
      w.free(logits_);
      break;
    }
    case LossCode::chunked_hidden: {
      gradient_ = w.save("fp32 hidden gradient", 2 * s_.features(s_.token.hidden));
      // The parts are alike after the first.
      for (std::int64_t i = 0; i < std::min<std::int64_t>(chunks_, 2); ++i) {
        const Tensor part = chunk(w, ceil_div(e, chunks_));
        const Tensor hidden =
            w.temporary("hidden gradient of a part",
                        Bytes{ceil_div(s_.features(s_.token.hidden).count(), chunks_)});
        on_gradient(w, "lm_head", weight().elements());
        w.free(part);
        w.free(hidden);
      }
      break;
    }
    case LossCode::compiled:
      saved_.push_back(w.save("row statistics", Bytes{2 * fp32 * s_.tokens}));
      break;
  }
}

void EagerHead::loss_backward(BlockWriter& w) {
  const std::int64_t e = logits();
  const Bytes narrow{s_.token.element * e};
  const auto free_saved = [&] {
    for (const Tensor tensor : saved_) w.free(tensor);
  };
  switch (loss_) {
    case LossCode::chunked_hidden:
      return;
    case LossCode::compiled:
      gradient_ = w.temporary("logits gradient", narrow);
      w.free(logits_);
      free_saved();
      return;
    case LossCode::parallel: {
      const Tensor zeros = w.temporary("loss gradient", wide(e));
      const Tensor exponentials = w.temporary("exponentials", wide(e));
      const Tensor sum = w.temporary("sum of gradients", wide(e));
      w.free(exponentials);
      const Tensor product = w.temporary("fp32 logits gradient", wide(e));
      for (const Tensor tensor : {sum, zeros}) w.free(tensor);
      free_saved();
      gradient_ = w.temporary("logits gradient", narrow);
      w.free(product);
      return;
    }
    case LossCode::chunked_logits: {
      const std::int64_t part = ceil_div(e, logit_parts());
      std::vector<Tensor> parts;
      for (const Tensor saved : saved_) {
        const Tensor picked = w.temporary("loss gradient of a part", wide(part));
        const Tensor input = w.temporary("fp32 logits gradient of a part", wide(part));
        w.free(picked);
        w.free(saved);
        parts.push_back(w.temporary("logits gradient of a part", Bytes{s_.token.element * part}));
        w.free(input);
      }
      gradient_ = w.temporary("logits gradient", narrow);
      for (const Tensor tensor : parts) w.free(tensor);
      return;
    }
    case LossCode::plain:
    case LossCode::fp32_logits:
    case LossCode::huggingface: {
      const Tensor picked = w.temporary("loss gradient", wide(e));
      const Tensor input = w.temporary("fp32 logits gradient", wide(e));
      w.free(picked);
      free_saved();
      gradient_ = w.temporary("logits gradient", narrow);
      w.free(input);
      return;
    }
  }
}

void EagerHead::backward(BlockWriter& w, const OnGradient& on_gradient) {
  if (!fused_chunks()) on_gradient(w, "lm_head", weight().elements());
  const Tensor whole = w.temporary("hidden gradient", s_.features(s_.token.hidden));
  w.free_with_weights(gradient_);
  w.free(hidden_);
  const Tensor reduced = write_input_reduction(w, s_, whole);
  write_eager_norm_backward(w, norm_, s_.residual(), reduced, Block::input_grad);
  w.free(Block::input);
}

}  // namespace zeroplan
