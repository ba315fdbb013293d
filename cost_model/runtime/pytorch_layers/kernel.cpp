// What does the attention kernel allocate? Front door: write_kernel.
#include "cost_model/runtime/pytorch_layers/kernel.hpp"

#include <utility>

#include "cost_model/kernel/core_attention.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;

// Copies of keys and values for each query head. The compiler makes them again in the backward
// pass, eager code keeps them instead of what they are copies of. Gives what goes when the kernel
// has run.
std::vector<Tensor> write_repetition(EagerPass& pass, const EagerShape& s, EagerKernel& t) {
  if (s.style.compiled) {
    BlockWriter& w = pass.writer();
    return {w.temporary("repeated keys", query(s)), w.temporary("repeated values", query(s))};
  }
  const Tensor key = pass.make("repeated keys", query(s));
  const Tensor value = pass.make("repeated values", query(s));
  std::vector<Tensor> single{t.key, t.value};
  // What values were seen in, which nothing else is that was turned.
  if (rotary(s)) single.push_back(std::exchange(t.mixed, BlockWriter::none));
  t.key = key;
  t.value = value;
  if (s.style.names_keys) return single;
  pass.drop(single);
  return {};
}

// One head of keys is seen as many by strides alone (integrations/sdpa_attention.py repeat_kv).
bool copies_keys(const EagerShape& s) {
  const bool one_head = s.token.key_value == s.problem.model.attention.head_dim;
  return repeats(s) && !(s.style.masks_windows && one_head);
}

// Ulysses: queries, keys and values of this rank's tokens become those of its heads, and the output
// the other way round (DeepSpeed runtime/sequence_parallel/ulysses_sp.py @016d2f706).
bool exchanges(const EagerShape& s) {
  return s.style.exchanges_heads && s.problem.layout.cp > 1;
}

// Gives what the code still refers to until the kernel has run.
std::vector<Tensor> write_exchange(EagerPass& pass, const EagerShape& s, EagerKernel& t) {
  pass.call("cp", Collective::all_to_all, query(s) + keys(s) + values(s));
  const std::vector<Tensor> before{t.query, t.key, t.value};
  t.query = pass.make("queries of this rank's heads", query(s));
  t.key = pass.make("keys of this rank's heads", keys(s));
  t.value = pass.make("values of this rank's heads", values(s));
  return before;
}

// Another tensor instead of one that goes.
Tensor write_instead(BlockWriter& w, std::string_view name, Bytes bytes, Tensor tensor) {
  const Tensor other = w.temporary(name, bytes);
  w.free(tensor);
  return other;
}

// Keys and values of this rank, where context parallelism gathers them.
Bytes sent_keys_values(const EagerShape& s) {
  return s.problem.layout.cp > 1 && !exchanges(s) ? keys(s) + values(s) : Bytes{};
}

bool keeps_context(const EagerShape& s) {
  return s.style.keeps_context && sent_keys_values(s) > Bytes{};
}

// How many times this rank's keys and values the kernel is given.
std::int64_t key_parts(const EagerShape& s) {
  return keeps_context(s) ? s.problem.layout.cp : 1;
}

// Puts keys and values in the order of the sequence, instead of this rank's.
void write_context(EagerPass& pass, const EagerShape& s, EagerKernel& t) {
  const std::int64_t cp = s.problem.layout.cp;
  BlockWriter& w = pass.writer();
  const auto whole = [&](std::string_view name, Tensor own, Bytes bytes) {
    const Tensor gathered = w.temporary("keys or values by rank", cp * bytes);
    const Tensor joined = pass.make(name, cp * bytes);
    w.free(gathered);
    pass.drop(own);
    return joined;
  };
  t.key = whole("keys of the whole sequence", t.key, keys(s));
  t.value = whole("values of the whole sequence", t.value, values(s));
}

// Keys and values of the whole sequence, gathered as one tensor.
std::vector<Tensor> write_context_gather(BlockWriter& w, const EagerShape& s) {
  const std::int64_t cp = s.problem.layout.cp;
  if (sent_keys_values(s) == Bytes{} || keeps_context(s)) return {};
  const Bytes both = repeats(s) ? 2 * query(s) : keys(s) + values(s);
  return {w.temporary("joined keys and values", both),
          w.temporary("keys and values of the whole sequence", cp * both)};
}

std::int64_t score_elements(const EagerShape& s) {
  return s.token.heads * s.tokens * s.problem.training.sequence_length;
}

// With sinks a column more, in the format that scores and sinks have together: sinks are weights,
// in fp32 under autocast, where a 16-bit copy is multiplied (models/gpt_oss/modeling_gpt_oss.py
// eager_attention_forward). `passing`: what the code refers to until its end.
void write_softmax_with_sinks(EagerPass& pass,
                              const EagerShape& s,
                              EagerKernel& t,
                              Tensor masked,
                              std::vector<Tensor>& passing) {
  BlockWriter& w = pass.writer();
  const Bytes all{(s.style.autocast ? fp32 : s.token.element) * score_elements(s)};
  const Tensor joined = w.temporary("scores with sinks", all);
  passing.push_back(w.temporary("scores less their largest", all));
  w.free(joined);
  const Tensor softmax = pass.make("softmax with sinks", all);
  if (s.style.autocast) {
    t.wide_softmax = softmax;
    t.softmax = pass.make("softmax", Bytes{s.token.element * score_elements(s)});
  } else {
    t.softmax = softmax;
  }
  w.free(masked);
}

// Scores of attention that is not fused: softmax in fp32 and its 16-bit copy are saved.
void write_scores(EagerPass& pass,
                  const EagerShape& s,
                  EagerKernel& t,
                  std::vector<Tensor>& passing) {
  BlockWriter& w = pass.writer();
  const Bytes scores{s.token.element * score_elements(s)};
  const Bytes in_fp32{fp32 * score_elements(s)};
  const Tensor raw = w.temporary("scores", scores);
  Tensor scaled = w.temporary("scaled scores", scores);
  w.free(raw);
  if (s.style.caps) {
    const Tensor divided = w.temporary("scores by their cap", scores);
    w.free(scaled);
    t.tangent = pass.make("tanh of scores", scores);
    w.free(divided);
    scaled = w.temporary("capped scores", scores);
    pass.done(t.tangent);
  }
  // A mask has the format of the hidden state, and gives it to what it is added to.
  const bool widened = s.wide_stream();
  const Tensor masked = w.temporary("masked scores", widened ? in_fp32 : scores);
  w.free(scaled);
  if (s.style.joins_sinks) return write_softmax_with_sinks(pass, s, t, masked, passing);
  if (s.style.narrow_softmax && !widened) {
    t.softmax = pass.make("softmax", scores);
    return w.free(masked);
  }
  const bool copied = s.token.element < fp32;
  const Tensor wide = w.temporary("fp32 scores", widened ? Bytes{} : in_fp32);
  const Tensor softmax = pass.make(copied ? "fp32 softmax" : "softmax", in_fp32);
  w.free(wide);
  if (widened) w.free(masked);  // else the copy takes its name
  (copied ? t.wide_softmax : t.softmax) = softmax;
  if (copied) t.softmax = pass.make("softmax", scores);
  if (!widened) w.free(masked);
}

// Frees the gradient of the kernel's output and what the kernel read.
KernelGradients write_fused_backward(BlockWriter& w,
                                     const EagerShape& s,
                                     const EagerKernel& t,
                                     Tensor output_gradient) {
  const bool repeated = repeats(s);
  const Bytes own_values = s.style.pads_values ? query(s) : values(s);
  std::vector<Tensor> copies = write_context_gather(w, s);
  if (repeated && s.style.compiled) {
    for (const char* name : {"repeated keys", "repeated values"})
      copies.push_back(w.temporary(name, query(s)));
  }
  const std::int64_t parts = key_parts(s);
  const KernelGradients g{
      .query = w.temporary("query gradient", query(s)),
      .key = w.temporary("key gradient", parts * (repeated ? query(s) : keys(s))),
      .value = w.temporary("value gradient", parts * (repeated ? query(s) : own_values))};
  // flash-attn works in fp32 on heads padded to 32, and on a copy of keys and values for each query
  // head where they are fewer.
  constexpr std::int64_t unit = 32;
  const std::int64_t head = round_up(s.token.query / s.token.heads, unit);
  const bool expands = !repeated && s.token.key_value < s.token.query;
  const Bytes expanded = expands ? parts * query(s) : Bytes{};
  std::vector<Tensor> working{
      w.temporary("row sums", Bytes{fp32 * s.token.heads * s.tokens}),
      w.temporary("fp32 query gradient", Bytes{fp32 * s.token.heads * head * s.tokens}),
      w.temporary("key gradient by query head", expanded),
      w.temporary("value gradient by query head", expanded)};
  for (const Tensor tensor : working) w.free(tensor);
  w.free(output_gradient);
  for (const Tensor copy : copies) w.free(copy);
  for (const Tensor tensor : tensors_of(t)) w.free(tensor);
  return g;
}

KernelGradients write_unfused_backward(BlockWriter& w,
                                       const EagerShape& s,
                                       const EagerKernel& t,
                                       Tensor output_gradient) {
  const Bytes scores{s.token.element * score_elements(s)};
  const Bytes wide{fp32 * score_elements(s)};
  const bool repeated = repeats(s);
  const Tensor value = w.temporary("value gradient", repeated ? query(s) : values(s));
  Tensor softmax = w.temporary("softmax gradient", scores);
  for (const Tensor tensor : {output_gradient, t.output, t.value}) w.free(tensor);
  const bool widens = t.wide_softmax != BlockWriter::none;
  if (widens) w.free(t.softmax);
  if (widens && s.style.joins_sinks) {
    softmax = write_instead(w, "softmax gradient in fp32", wide, softmax);
  }
  const bool joined = widens || s.style.joins_sinks;
  const Bytes own = widens ? wide : scores;
  const Tensor of_all = w.temporary("softmax gradient of all columns", joined ? own : Bytes{});
  if (joined) w.free(softmax);
  const Tensor of_scores = w.temporary("gradient of all scores", own);
  for (const Tensor tensor : {of_all, widens ? t.wide_softmax : t.softmax}) w.free(tensor);
  if (!joined) w.free(softmax);
  if (s.style.joins_sinks) {
    // Of the largest score of a row, which all were reduced by: written into zeros, and added.
    const Tensor zeros = w.temporary("zeros", own);
    const Tensor largest = w.temporary("gradient of the largest scores", own);
    for (const Tensor tensor : {zeros, largest}) w.free(tensor);
  }
  Tensor scaled = w.temporary("scaled score gradient", scores);
  w.free(of_scores);
  if (s.style.caps) {
    const Tensor tangent = w.temporary("tanh gradient", scores);
    w.free(scaled);
    const Tensor divided = w.temporary("gradient of scores by their cap", scores);
    for (const Tensor tensor : {tangent, t.tangent}) w.free(tensor);
    scaled = w.temporary("scaled score gradient", scores);
    w.free(divided);
  }
  const Tensor raw = w.temporary("score gradient", scores);
  w.free(scaled);
  const KernelGradients g{.query = w.temporary("query gradient", query(s)),
                          .key = w.temporary("key gradient", repeated ? query(s) : keys(s)),
                          .value = value};
  for (const Tensor tensor : {raw, t.key, t.query, t.mixed, t.rotary, t.contiguous}) w.free(tensor);
  return g;
}

bool unfused(const EagerShape& s) {
  return s.problem.training.attention == AttentionKernel::unfused;
}

}  // namespace

void write_kernel(EagerPass& pass, const EagerShape& s, EagerKernel& t) {
  BlockWriter& w = pass.writer();
  std::vector<Tensor> passing;
  if (exchanges(s)) passing = write_exchange(pass, s, t);
  if (copies_keys(s)) {
    for (const Tensor tensor : write_repetition(pass, s, t)) passing.push_back(tensor);
  }
  pass.call("cp", Collective::all_gather, s.problem.layout.cp * sent_keys_values(s));
  if (keeps_context(s)) write_context(pass, s, t);
  for (const Tensor tensor : write_context_gather(w, s)) passing.push_back(tensor);
  const Bytes output = s.features(s.token.output);
  pass.run_kept({Module::core_attention});
  if (unfused(s)) {
    // A product copies views, and nothing else keeps what values that are not turned are views of.
    if (t.mixed != BlockWriter::none && t.query != BlockWriter::none) {
      if (t.value == BlockWriter::none) t.value = pass.make("values by head", values(s));
      passing.push_back(std::exchange(t.mixed, BlockWriter::none));
    }
    write_scores(pass, s, t, passing);
    const Tensor by_head = w.temporary("attention output by head", output);
    t.output = pass.keep("attention output", output);
    w.free(by_head);
  } else {
    // Of numbers, made from the model's of truths in each layer.
    if (s.style.masks_windows) {
      t.mask = pass.make("mask of a window", Bytes{s.token.element * mask_elements(s.problem)});
    }
    if (s.style.pads_values) {
      passing.push_back(std::exchange(t.value, pass.make("padded values", query(s))));
    }
    t.output = pass.keep("attention output", s.style.pads_values ? query(s) : output);
    t.statistics = pass.keep("log-sum-exp", Bytes{fp32 * s.token.heads * s.tokens});
    t.random_state = pass.keep("random state", Bytes{2 * allocation_unit});
    // The kernel that takes a mask gives its output token by token.
    const bool by_head = s.style.joins_heads && !s.style.masks_windows;
    const bool strided = by_head || s.style.pads_values;
    const bool copies = s.style.merges_ranges || (strided && !exchanges(s));
    if (copies) t.contiguous = pass.make("contiguous attention output", output);
  }
  if (exchanges(s)) {
    pass.call("cp", Collective::all_to_all, output);
    t.contiguous = pass.make("attention output of this rank's tokens", output);
  }
  pass.drop(passing);
}

KernelGradients write_kernel_backward(BlockWriter& w,
                                      const EagerShape& s,
                                      const EagerKernel& t,
                                      Tensor output_gradient) {
  const std::int64_t cp = s.problem.layout.cp;
  const Bytes both = sent_keys_values(s);
  if (keeps_context(s)) {
    w.call("cp", Collective::reduce_scatter, cp * both);
  } else {
    // Gradients of keys and values go all the way round, in fp32
    // (torch/distributed/tensor/experimental/_attention.py).
    w.call("cp", Collective::all_gather, cp * both);
    w.call("cp", Collective::send_recv, Bytes{fp32 * (both.count() / s.token.element)}, cp);
  }
  if (exchanges(s)) {
    const Bytes output = s.features(s.token.output);
    w.call("cp", Collective::all_to_all, output);
    output_gradient =
        write_instead(w, "output gradient of this rank's heads", output, output_gradient);
  }
  if (s.style.pads_values) {
    output_gradient = write_instead(w, "padded output gradient", query(s), output_gradient);
  }
  KernelGradients g = unfused(s) ? write_unfused_backward(w, s, t, output_gradient)
                                 : write_fused_backward(w, s, t, output_gradient);
  if (repeats(s)) {
    g.value = write_instead(w, "summed value gradient", key_parts(s) * keys(s), g.value);
    g.key = write_instead(w, "summed key gradient", key_parts(s) * keys(s), g.key);
  }
  if (s.style.pads_values) {
    g.value = write_instead(w, "value gradient without padding", values(s), g.value);
  }
  if (keeps_context(s)) {
    g.value = write_instead(w, "value gradient of this rank's tokens", values(s), g.value);
    g.key = write_instead(w, "key gradient of this rank's tokens", keys(s), g.key);
  }
  if (!exchanges(s)) return g;
  w.call("cp", Collective::all_to_all, query(s) + keys(s) + values(s));
  return {write_instead(w, "query gradient of this rank's tokens", query(s), g.query),
          write_instead(w, "key gradient of this rank's tokens", keys(s), g.key),
          write_instead(w, "value gradient of this rank's tokens", values(s), g.value)};
}

std::vector<Tensor> tensors_of(const EagerKernel& t) {
  return {t.query,   t.key,        t.value,      t.mixed,        t.rotary,
          t.output,  t.contiguous, t.statistics, t.random_state, t.wide_softmax,
          t.softmax, t.tangent,    t.mask};
}

}  // namespace zeroplan
