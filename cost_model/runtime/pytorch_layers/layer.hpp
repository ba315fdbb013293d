#pragma once
// A transformer layer as PyTorch runs it without a training framework's kernels.
// Sources: torchtitan models/llama3/model.py, models/common and
// distributed/activation_checkpoint.py @b5bcd76c6; huggingface/transformers
// models/llama/modeling_llama.py @002272831; pytorch tools/autograd/derivatives.yaml for what an
// operator saves.

#include "cost_model/program/layer_shape.hpp"
#include "cost_model/runtime/pytorch_layers/pass.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

struct EagerShape : LayerShape {
  EagerStyle style;
  const std::vector<Weight>& weights;  // of the layer

  /// Whether the residual stream is fp32, as autocast leaves it.
  bool wide_stream() const { return style.autocast || token.element == 4; }
  Bytes residual() const { return (style.autocast ? 2 : 1) * LayerShape::residual(); }

  /// What a linear gathers over tensor parallelism, as it stands when it is there.
  Bytes gathered_operand() const {
    return style.narrow_gathers ? Bytes{ceil_div(gathered().count(), 2)} : gathered();
  }
  /// What a linear's collectives run beside.
  Beside beside_linear() const { return style.sends_in_parts ? Beside::parts : Beside::nothing; }

  /// Elements of the named weight on this rank; of the experts' together, or of the dense one.
  std::int64_t elements(std::string_view weight, bool expert = false) const;
};

/// Whether a layer of experts has some that all tokens go to.
inline bool has_shared_experts(const EagerShape& s) {
  return s.problem.model.moe->shared_intermediate_size > 0;
}

/// True where norms are written out in fp32 operators: RMSNorm that nothing fuses.
bool is_composite(const EagerShape& s);

/// What a norm saves.
struct EagerNorm {
  Tensor widened = BlockWriter::none;     // its input in fp32, where that is not fp32
  Tensor centred = BlockWriter::none;     // less its mean, where it is not scaled as it is
  Tensor normalised = BlockWriter::none;  // before the weight is applied
  Tensor statistics = BlockWriter::none;
  Tensor output = BlockWriter::none;
  bool composite = false;       // of operators: is_composite
  bool weighs_wide = false;     // EagerStyle's
  bool reads_wide = false;      // its input is fp32, of `bytes`
  bool weight_is_wide = false;  // and widens what it weighs
};

/// Whether a norm of what a linear wrote keeps a copy of it in fp32, not the input as it is.
bool widens_norm_input(const EagerShape& s);
/// A norm of what a linear wrote, whose input and output are `bytes`, with fp32 `statistics`.
EagerNorm write_eager_norm(EagerPass& pass, const EagerShape& s, Bytes bytes, Bytes statistics);
/// A norm written out in fp32 operators, without its weight: x.float(), its square's mean,
/// x * rsqrt, back to the format of x, which is `normalised`; the statistics stay.
EagerNorm write_plain_norm(EagerPass& pass, const EagerShape& s, Bytes bytes, Bytes statistics);
/// A norm of the residual stream.
EagerNorm write_stream_norm(EagerPass& pass, const EagerShape& s);
/// Whether a norm of the residual stream keeps its input as it is, not a copy in fp32.
bool keeps_norm_input(const EagerShape& s);
/// Frees the gradient of a norm's output and what the norm saved; gives the gradient of its input,
/// which is `slot` where that is given.
Tensor write_eager_norm_backward(BlockWriter& w,
                                 const EagerNorm& norm,
                                 Bytes bytes,
                                 Tensor output_gradient,
                                 Tensor slot = BlockWriter::none);

/// What the linears after a norm read: its output, which is then theirs, or that of all ranks of
/// sequence parallelism; under autocast each of them has a 16-bit copy of its own. An argument of
/// the half's call holds the norm's own until drop_argument, unless compiled.
Tensor write_linear_input(EagerPass& pass,
                          const EagerShape& s,
                          EagerNorm& norm,
                          std::int64_t linears);
void drop_argument(EagerPass& pass, EagerNorm& norm);

/// The gradient of a linear's weight, and the kernels of that and its input's; `expert`: of all
/// experts here together.
void write_linear_gradients(BlockWriter& w,
                            const EagerShape& s,
                            Module linear,
                            const OnGradient& on_gradient,
                            bool expert = false);

/// The gradient of an input that several linears read. Autograd adds the second part to the first
/// in a new tensor, since both are seen through views, and the others in place. Under autocast each
/// part is widened first, and all are added in place.
class InputGradient {
 public:
  InputGradient(BlockWriter& w, const EagerShape& s, Bytes bytes)
      : w_(w), bytes_(bytes), widens_(s.style.autocast) {}

  /// One linear's part.
  Tensor make() { return w_.temporary("part of the input gradient", bytes_); }
  void add(Tensor part);
  Tensor sum() const { return sum_; }

 private:
  BlockWriter& w_;
  Bytes bytes_;
  bool widens_;
  Tensor sum_ = BlockWriter::none;
  int parts_ = 0;
};

/// A reduction of an input gradient over tensor parallelism: under sequence parallelism it leaves
/// each rank its rows, else it works in place.
Tensor write_input_reduction(BlockWriter& w, const EagerShape& s, Tensor whole);

/// The gradient of a row reduction, gathered from the ranks of sequence parallelism, or narrowed
/// under autocast; none without.
Tensor write_gathered_gradient(BlockWriter& w, const EagerShape& s, std::string_view name);

/// Gathers over tensor parallelism: allocates what `allocate` does when the parts are there.
template <class Allocate>
Tensor write_gathered(BlockWriter& w, const EagerShape& s, Allocate&& allocate) {
  w.call("tp", Collective::all_gather, s.gathered_operand(), s.beside_linear());
  const Tensor parts =
      w.temporary("gathered parts", s.style.joins_gathered ? s.gathered_operand() : Bytes{});
  const Tensor whole = allocate();
  w.free(parts);
  return whole;
}

/// Reduces what each rank of tensor parallelism has a part of the sum of.
void send_parts(BlockWriter& w, const EagerShape& s);

/// What a reduction over sequence parallelism sends beside `whole`: a copy in the ranks' order.
Tensor write_rank_order(BlockWriter& w, const EagerShape& s);

/// What the attention kernel's backward pass reads, as far as the kernel has it.
struct EagerKernel {
  Tensor query = BlockWriter::none, key = BlockWriter::none, value = BlockWriter::none;
  Tensor mixed = BlockWriter::none;   // what queries, keys, values view if one projection made them
  Tensor rotary = BlockWriter::none;  // what turned queries and keys
  Tensor output = BlockWriter::none;
  Tensor contiguous = BlockWriter::none;                                    // a copy of the output
  Tensor statistics = BlockWriter::none, random_state = BlockWriter::none;  // of a fused kernel
  Tensor wide_softmax = BlockWriter::none, softmax = BlockWriter::none;     // of an unfused kernel
  Tensor tangent = BlockWriter::none;  // of scores, where they are capped
  Tensor mask = BlockWriter::none;     // that is added to scores
};

/// What linear attention keeps (linear_attention.cpp).
struct EagerDeltaRule {
  Tensor mixed = BlockWriter::none;  // queries, keys and values before they are convolved
  std::vector<Tensor> saved;         // by rates and kernels
  Tensor widened = BlockWriter::none, statistics = BlockWriter::none;
  Tensor normalised = BlockWriter::none, weighed = BlockWriter::none;
  Tensor gate = BlockWriter::none, activated = BlockWriter::none;
  Tensor gated = BlockWriter::none;  // what the last projection reads
};

/// What a state space keeps (state_space.cpp).
struct EagerStateSpace {
  Tensor projected = BlockWriter::none;
  Tensor scanned = BlockWriter::none;     // what the gated norm reads beside the gate
  Tensor statistics = BlockWriter::none;  // of that norm
};

/// Attention half of a layer: what its backward pass reads, and its result.
struct EagerAttention {
  EagerNorm norm;
  Tensor input = BlockWriter::none;  // what the projections read
  std::vector<Tensor> latents;       // what the up-projections of latent attention read
  EagerNorm query_norm, key_norm;    // a head each
  std::vector<Tensor> raw;           // the inputs of query_norm and key_norm
  EagerKernel kernel;
  Tensor sigmoid = BlockWriter::none, gated = BlockWriter::none;  // where the output has a gate
  EagerDeltaRule delta_rule;                                      // instead of all but the norm
  EagerStateSpace state_space;                                    // or these
  Tensor result = BlockWriter::none;
};
EagerAttention write_eager_attention(EagerPass& pass, const EagerShape& s, LayerKind kind);
/// Gives the gradient of the norm's output; `output_gradient` stays the caller's.
Tensor write_eager_attention_backward(BlockWriter& w,
                                      const EagerShape& s,
                                      LayerKind kind,
                                      const EagerAttention& t,
                                      const OnGradient& on_gradient);

/// What GELU by tanh saves beside its input and its result where it is written out.
struct EagerGelu {
  Tensor half = BlockWriter::none;     // of the input
  Tensor widened = BlockWriter::none;  // the input in fp32, under autocast
  Tensor tangent = BlockWriter::none;
  Tensor shifted = BlockWriter::none;  // by one
};

/// What ReLU squared keeps beside its result.
struct EagerSquaredRelu {
  Tensor rectified = BlockWriter::none;
  Tensor widened = BlockWriter::none;  // the same in fp32, under autocast
};

/// What an activation whose inputs are bounded keeps beside them (gpt-oss; transformers
/// modeling_gpt_oss.py _apply_gate, torchtitan models/gpt_oss/moe.py swiglu).
struct EagerBounds {
  Tensor gate = BlockWriter::none;  // bounded
  Tensor sigmoid = BlockWriter::none;
  Tensor shifted = BlockWriter::none;  // up, bounded, by one
};

/// One MLP: of a dense layer, of the shared experts or of all routed experts together.
struct EagerMlp {
  Tensor gate = BlockWriter::none;
  Tensor activated = BlockWriter::none;
  Tensor up = BlockWriter::none;  // the only first projection where it is not gated
  EagerGelu gelu;
  EagerSquaredRelu squared;
  EagerBounds bounds;
  Tensor product = BlockWriter::none;  // what the second projection reads
};

/// MLP or expert half of a layer.
struct EagerFeedForward {
  EagerNorm norm;
  Tensor input = BlockWriter::none;
  EagerMlp mlp;
  std::vector<Tensor> routing;  // of experts only
  Tensor permuted = BlockWriter::none;
  Tensor weighed = BlockWriter::none;  // what the experts gave
  EagerMlp shared;
  Tensor shared_output = BlockWriter::none;  // where a gate weighs it
  Tensor result = BlockWriter::none;
};
EagerFeedForward write_eager_feed_forward(EagerPass& pass, const EagerShape& s, LayerKind kind);
/// `whole`: the gathered gradient of the half's result.
Tensor write_eager_feed_forward_backward(BlockWriter& w,
                                         const EagerShape& s,
                                         LayerKind kind,
                                         const EagerFeedForward& t,
                                         const OnGradient& on_gradient,
                                         Tensor whole);

/// All that a half holds, for a checkpoint to drop.
std::vector<Tensor> tensors_of(const EagerNorm& norm);
std::vector<Tensor> tensors_of(const EagerKernel& kernel);
std::vector<Tensor> tensors_of(const EagerAttention& attention);
std::vector<Tensor> tensors_of(const EagerFeedForward& feed_forward);

/// A reduction over tensor parallelism: under sequence parallelism it leaves each rank its rows,
/// else it works in place. `read_again`: by the backward pass. A checkpoint by operator saves what
/// is not too, unless it is compiled.
Tensor write_row_reduction(EagerPass& pass, const EagerShape& s, Tensor whole, bool read_again);

/// One layer on one rank: writes its events into the block of whoever runs it.
class EagerLayer {
 public:
  EagerLayer(EagerShape shape, LayerKind kind) : s_(std::move(shape)), kind_(kind) {}

  /// From Block::input to Block::output; frees the input where nothing keeps it.
  void forward(BlockWriter& w);
  /// From Block::output_grad, which it frees, to Block::input_grad.
  void backward(BlockWriter& w, const OnGradient& on_gradient);

 private:
  struct Halves {
    EagerAttention attention;
    Tensor middle = BlockWriter::none;  // after attention and its residual
    EagerFeedForward feed_forward;
    EagerNorm after_attention, after_feed_forward;  // where a layer has four norms
  };
  Halves write(EagerPass& pass);
  EagerNorm write_after(EagerPass& pass, Tensor& result) const;
  // What the last half gives.
  Tensor& result() {
    return has_feed_forward(kind_) ? t_.feed_forward.result : t_.attention.result;
  }
  bool keeps_stream() const;
  bool reads_input() const;
  // What a half gives, which autocast leaves in 16 bits.
  Bytes half_bytes() const { return s_.LayerShape::residual(); }

  EagerShape s_;
  LayerKind kind_;
  Halves t_;
  std::vector<Tensor> cache_;
};

}  // namespace zeroplan
