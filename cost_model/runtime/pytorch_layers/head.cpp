// What do output layer and loss allocate? Front door: EagerHead.
#include "cost_model/runtime/pytorch_layers/head.hpp"

#include <algorithm>
#include <utility>

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

std::int64_t EagerHead::logits_a_token() const {
  const Problem& p = s_.problem;
  const LocalWeight local = weight();
  // Without loss parallelism every tensor-parallel rank gathers all of them.
  const bool whole = p.layout.tp > 1 && !is_parallel(code_);
  return whole ? local.rows * p.layout.tp : local.rows;
}

Bytes EagerHead::held_logits() const {
  const bool held = code_ == LossCode::huggingface && s_.problem.layout.pp == 1;
  return held ? narrow(logits()) : Bytes{};
}

void EagerHead::forward(BlockWriter& w) {
  std::vector<Tensor> cache;
  EagerPass pass(w, EagerPass::Keeps::saved, Checkpoint::none, cache);
  w.run(Module::final_norm);
  norm_ = write_stream_norm(pass, s_);
  if (!keeps_norm_input(s_)) w.free(Block::input);  // kept in fp32 instead
  hidden_ = write_linear_input(pass, s_, norm_, 1);
  write_logits(w);
  if (!s_.style.autocast) drop_argument(pass, norm_);  // else the model's output has it
}

void EagerHead::write_logits(BlockWriter& w) {
  if (parts_.of_hidden()) return;
  w.run(Module::output_layer);
  if (!s_.style.caps) {
    logits_ = w.save("logits", narrow(logits()));
    return;
  }
  const Tensor raw = w.temporary("raw logits", narrow(logits()));
  const Tensor divided = w.temporary("logits by their cap", narrow(logits()));
  w.free(raw);
  tangent_ = w.save("tanh of logits", narrow(logits()));
  w.free(divided);
  logits_ = w.save("logits", narrow(logits()));
}

// More than these differ in nothing that can be seen.
std::int64_t EagerHead::logit_parts() const {
  constexpr std::int64_t most = 64;
  return std::min(parts_.count, most);
}

Bytes EagerHead::narrow(std::int64_t count) const {
  return Bytes{s_.token.element * count};
}

// Frees the logits where the backward pass does not read them.
EagerHead::Loss EagerHead::write_loss(BlockWriter& w,
                                      Tensor logits,
                                      std::int64_t count,
                                      Category kept) const {
  Loss loss{.count = count};
  const auto keep = [&](std::string_view name, Bytes bytes) {
    loss.saved.push_back(w.allocate(name, bytes, kept));
  };
  switch (code_) {
    case LossCode::fp32_logits:
      // The model's own .float(): the loop's variable holds the result, over the one before it.
      keep("fp32 logits", wide(count));
      w.free(logits);
      keep("log-softmax", wide(count));
      break;
    case LossCode::plain:
    case LossCode::huggingface: {
      const Tensor upcast = w.temporary("fp32 logits", widens() ? wide(count) : Bytes{});
      keep("log-softmax", wide(count));
      w.free(upcast);
      if (code_ == LossCode::plain || held_logits() > Bytes{}) {
        w.free(logits);
      } else {
        loss.saved.push_back(logits);  // in the model's output object
      }
      if (held_logits() > Bytes{}) w.put(kept_logits, held_logits());
      break;
    }
    case LossCode::parallel: {
      const Tensor upcast = w.temporary("fp32 logits", wide(count));
      const Tensor shifted = w.temporary("shifted logits", wide(count));
      w.free(w.temporary("exponentials", wide(count)));
      keep("log-softmax", wide(count));
      w.free(shifted);
      w.free(upcast);
      w.free(logits);
      break;
    }
    // Each of its sums over ranks ends a kernel; the last one writes what the backward pass reads.
    case LossCode::compiled_parallel:
      keep("log-softmax", wide(count));
      w.free(logits);
      break;
    case LossCode::compiled: {
      constexpr std::int64_t statistics = 2;  // of a row, fp32
      keep("row statistics", Bytes{statistics * fp32 * ceil_div(count, logits_a_token())});
      loss.logits = logits;
      break;
    }
  }
  return loss;
}

// Gives the gradient of the logits.
Tensor EagerHead::write_loss_backward(BlockWriter& w, const Loss& loss) const {
  const auto free_saved = [&] {
    for (const Tensor tensor : loss.saved) w.free(tensor);
  };
  switch (code_) {
    case LossCode::compiled: {
      const Tensor gradient = w.temporary("logits gradient", narrow(loss.count));
      w.free(loss.logits);
      free_saved();
      return gradient;
    }
    case LossCode::compiled_parallel: {
      const Tensor zeros = w.temporary("loss gradient", wide(loss.count));
      const Tensor gradient = w.temporary("logits gradient", narrow(loss.count));
      w.free(zeros);
      free_saved();
      return gradient;
    }
    case LossCode::parallel: {
      const Tensor zeros = w.temporary("loss gradient", wide(loss.count));
      const Tensor exponentials = w.temporary("exponentials", wide(loss.count));
      const Tensor sum = w.temporary("sum of gradients", wide(loss.count));
      w.free(exponentials);
      const Tensor product = w.temporary("fp32 logits gradient", wide(loss.count));
      for (const Tensor tensor : {sum, zeros}) w.free(tensor);
      free_saved();
      const Tensor gradient = w.temporary("logits gradient", narrow(loss.count));
      w.free(product);
      return gradient;
    }
    case LossCode::plain:
    case LossCode::fp32_logits:
    case LossCode::huggingface:
      break;
  }
  const Tensor picked = w.temporary("loss gradient", wide(loss.count));
  const Tensor input = w.temporary("fp32 logits gradient", wide(loss.count));
  w.free(picked);
  free_saved();
  if (!widens()) return input;
  const Tensor gradient = w.temporary("logits gradient", narrow(loss.count));
  w.free(input);
  return gradient;
}

// Output layer and loss of one part of the hidden state, forward and backward; so many of them
// compute.
void EagerHead::write_part(BlockWriter& w,
                           const OnGradient& on_gradient,
                           std::int64_t times) const {
  const std::int64_t count = ceil_div(logits(), parts_.count);
  // The loop's variable holds them to the end.
  w.run(Module::output_layer, times);
  const Tensor made = w.temporary("logits of a part", narrow(count));
  w.run(Module::loss, times);
  const Loss loss = write_loss(w, BlockWriter::none, count, Category::temporaries);
  w.run_backward(Module::loss, times);
  const Tensor gradient = write_loss_backward(w, loss);
  w.run_linear_backward(Module::output_layer, times);
  const Tensor hidden =
      w.temporary("hidden gradient of a part",
                  Bytes{ceil_div(s_.features(s_.token.hidden).count(), parts_.count)});
  w.free(gradient);
  on_gradient(w, "lm_head", weight().elements());
  w.free(hidden);
  w.free(made);
}

// Over tensor parallelism: the maximum, the target's logit and the sum of exponentials, fp32; or
// all logits. Each part of the tokens does so for itself.
void EagerHead::send_loss(BlockWriter& w) const {
  const auto of_part = [&](Bytes all) { return Bytes{ceil_div(all.count(), parts_.count)}; };
  if (is_parallel(code_)) {
    constexpr std::int64_t sums = 3;
    w.call("tp", Collective::all_reduce, of_part(wide(s_.tokens)), sums * parts_.count);
  } else {
    w.call("tp", Collective::all_gather, of_part(s_.features(s_.problem.model.vocab_size)),
           parts_.count);
  }
}

void EagerHead::loss_forward(BlockWriter& w, const OnGradient& on_gradient) {
  send_loss(w);
  if (parts_.of_hidden()) {
    // Parts of several samples are not contiguous, and are copied.
    const bool apart = tokens_in_parts(s_.problem) < local_tokens(s_.problem);
    const Tensor copies =
        w.temporary("hidden state in parts", apart ? s_.features(s_.token.hidden) : Bytes{});
    const Tensor sum =
        w.temporary("fp32 hidden gradient", Bytes{fp32 * s_.token.hidden * s_.tokens});
    // The parts are alike after the first.
    write_part(w, on_gradient, 1);
    if (parts_.count > 1) write_part(w, on_gradient, parts_.count - 1);
    w.run(Module::gradient_of_parts);
    gradient_ = w.save("hidden gradient", s_.features(s_.token.hidden));
    for (const Tensor tensor : {sum, copies}) w.free(tensor);
    return;
  }
  w.run(Module::loss, parts_.count);
  if (!parts_.of_logits()) {
    losses_.push_back(write_loss(w, logits_, logits(), Category::activations));
    w.free(std::exchange(norm_.output, BlockWriter::none));
    return;
  }
  const std::int64_t count = ceil_div(logits(), logit_parts());
  for (std::int64_t i = 0; i < logit_parts(); ++i) {
    losses_.push_back(write_loss(w, BlockWriter::none, count, Category::activations));
  }
  w.free(logits_);
}

void EagerHead::loss_backward(BlockWriter& w) {
  if (parts_.of_hidden()) return;
  w.run_backward(Module::loss, parts_.count);
  std::vector<Tensor> gradients;
  for (const Loss& loss : losses_) gradients.push_back(write_loss_backward(w, loss));
  gradient_ = gradients.front();
  if (!parts_.of_logits()) return;
  gradient_ = w.temporary("logits gradient", narrow(logits()));
  w.run_backward(Module::gradient_of_parts);
  for (const Tensor part : gradients) w.free(part);
}

void EagerHead::uncap(BlockWriter& w) {
  const Tensor tangent = w.temporary("tanh gradient", narrow(logits()));
  w.free(gradient_);
  const Tensor divided = w.temporary("gradient of logits by their cap", narrow(logits()));
  for (const Tensor tensor : {tangent, tangent_}) w.free(tensor);
  gradient_ = w.temporary("raw logits gradient", narrow(logits()));
  w.free(divided);
}

void EagerHead::output_layer_backward(BlockWriter& w, const OnGradient& on_gradient) {
  if (s_.style.caps) uncap(w);
  if (!parts_.of_hidden()) {
    w.run_linear_backward(Module::output_layer);
    on_gradient(w, "lm_head", weight().elements());
    const Tensor logits = gradient_;
    gradient_ = w.temporary("hidden gradient", s_.features(s_.token.hidden));
    w.free_with_weights(logits);
    if (s_.style.autocast) {
      const Tensor narrow = gradient_;
      gradient_ = w.temporary("hidden gradient in fp32", s_.residual());
      w.free(narrow);
    }
  }
  w.free(hidden_);
}

void EagerHead::norm_backward(BlockWriter& w) {
  const Tensor reduced = write_input_reduction(w, s_, gradient_);
  w.run_backward(Module::final_norm);
  write_eager_norm_backward(w, norm_, s_.residual(), reduced, Block::input_grad);
  if (keeps_norm_input(s_)) w.free(Block::input);
}

}  // namespace zeroplan
