#pragma once
// What a training step asks of the machine it runs on. The step itself does not know which it is.

#include <cstdint>

#include "validator/device/bf16.hpp"
#include "validator/device/stopwatch.hpp"
#include "validator/device/view.hpp"

namespace zeroplan::engine {

using Half = View<Bf16>;
using ConstHalf = View<const Bf16>;
using Wide = View<float>;
using ConstWide = View<const float>;

/// The shape of the attention of one rank. Queries, keys and values of a token stand one after
/// another in a row, each head by head.
struct AttentionShape {
  std::int64_t sequence = 0;
  std::int64_t samples = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;

  std::int64_t query() const { return heads * head_dim; }
  std::int64_t key_value() const { return kv_heads * head_dim; }
  std::int64_t row() const { return query() + 2 * key_value(); }
};

/// The rows of the vocabulary that a rank holds: [first, first + rows), of which those at or above
/// `size` are padding.
struct VocabularyPart {
  std::int64_t first = 0;
  std::int64_t rows = 0;
  std::int64_t size = 0;
};

/// What the loss needs of a token's logits; each one number a token.
struct LossSums {
  Wide maximum, sum, target;
};

struct AdamStep {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  std::int64_t step = 1;  // from 1
};

/// Weight and, of a layer norm, bias; their gradients likewise. No bias: RMS norm.
struct NormWeights {
  Half weight, bias;
  bool centred() const { return bias.rows > 0; }
};

/// One rank's device. Every operation runs after the one before it. Results are bf16, sums inside
/// an operation fp32, in a fixed order. Gradients of weights are added to what is there.
class Device {
 public:
  virtual ~Device() = default;

  /// False where nothing is computed and memory is only counted.
  virtual bool holds_data() const = 0;
  virtual void* allocate(std::int64_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  /// Scratch for the operations; stays valid until the next call.
  virtual void use_workspace(Wide workspace) = 0;
  /// Numbers of the workspace that attention takes, at most.
  virtual std::int64_t attention_scratch(const AttentionShape& shape) const = 0;

  virtual void upload(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void download(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void zero(void* memory, std::int64_t bytes) = 0;

  /// The instant at which all that was asked until now is done.
  virtual Stopwatch::Point now() { return std::make_shared<HostInstant>(); }
  /// From here on matrix products are timed; null: no longer.
  void time_with(Stopwatch* watch) { watch_ = watch; }

  /// y = x w^T, and its gradients.
  void linear(ConstHalf x, ConstHalf w, Half y) {
    product(x.rows * w.elements(), [&] { do_linear(x, w, y); });
  }
  void linear_input_gradient(ConstHalf dy, ConstHalf w, Half dx) {
    product(dy.rows * w.elements(), [&] { do_linear_input_gradient(dy, w, dx); });
  }
  void linear_weight_gradient(ConstHalf dy, ConstHalf x, Half dw) {
    product(dy.rows * dw.elements(), [&] { do_linear_weight_gradient(dy, x, dw); });
  }
  /// Adds a bias to each row; its gradient is the sum of the rows.
  virtual void add_bias(Half y, ConstHalf bias) = 0;
  virtual void bias_gradient(ConstHalf dy, Half dbias) = 0;
  virtual void add(Half to, ConstHalf from) = 0;
  virtual void copy(Half to, ConstHalf from) = 0;

  /// `statistics`: reciprocal deviation a row, and the mean before it where centred.
  virtual void norm(ConstHalf x, const NormWeights& w, Half y, Wide statistics) = 0;
  /// dx = residual + gradient through the norm.
  virtual void norm_gradient(ConstHalf dy,
                             ConstHalf x,
                             ConstWide statistics,
                             const NormWeights& w,
                             ConstHalf residual,
                             Half dx,
                             const NormWeights& dw) = 0;

  /// Turns queries and keys by their position, or back.
  virtual void rotate(Half qkv, const AttentionShape& shape, bool back) = 0;
  /// Causal attention; `statistics`: log of the sum of exponentials, a head of a token.
  virtual void attention(ConstHalf qkv, const AttentionShape& shape, Half y, Wide statistics) = 0;
  virtual void attention_gradient(ConstHalf dy,
                                  ConstHalf qkv,
                                  ConstHalf y,
                                  ConstWide statistics,
                                  const AttentionShape& shape,
                                  Half dqkv) = 0;

  /// y = silu(gate) up where x is [gate, up], twice as wide as y; else y = gelu(x).
  virtual void activation(ConstHalf x, Half y) = 0;
  virtual void activation_gradient(ConstHalf dy, ConstHalf x, Half dx) = 0;

  /// Rows of the table that the rank holds; zeros for other tokens.
  virtual void embed(View<const std::int32_t> ids,
                     ConstHalf table,
                     const VocabularyPart& part,
                     Half y) = 0;
  virtual void embed_gradient(View<const std::int32_t> ids,
                              ConstHalf dy,
                              const VocabularyPart& part,
                              Half dtable) = 0;
  /// Row t of y, which is token first + t, gets row (first + t) mod sequence of the table.
  virtual void add_positions(Half y,
                             std::int64_t first,
                             ConstHalf table,
                             std::int64_t sequence) = 0;
  virtual void positions_gradient(ConstHalf dy, Half dtable, std::int64_t sequence) = 0;

  /// The largest logit of each row; then the sum of exponentials below it and the target's logit;
  /// then logits become their gradients, times `scale`. Returns the sum of the tokens' losses.
  virtual void loss_maximum(ConstHalf logits, const VocabularyPart& part, Wide maximum) = 0;
  virtual void loss_sums(ConstHalf logits,
                         View<const std::int32_t> targets,
                         const VocabularyPart& part,
                         const LossSums& sums) = 0;
  virtual double loss_gradient(Half logits,
                               View<const std::int32_t> targets,
                               const VocabularyPart& part,
                               const LossSums& sums,
                               float scale) = 0;

  virtual void adam(ConstHalf gradients,
                    const AdamStep& step,
                    Wide master,
                    Wide first,
                    Wide second,
                    Half parameters) = 0;

 protected:
  virtual void do_linear(ConstHalf x, ConstHalf w, Half y) = 0;
  virtual void do_linear_input_gradient(ConstHalf dy, ConstHalf w, Half dx) = 0;
  virtual void do_linear_weight_gradient(ConstHalf dy, ConstHalf x, Half dw) = 0;

 private:
  template <class Work>
  void product(std::int64_t multiplications, Work&& work) {
    if (watch_ == nullptr) return work();
    watch_->add_product(2.0 * static_cast<double>(multiplications), watch_->timed(work));
  }

  Stopwatch* watch_ = nullptr;
};

}  // namespace zeroplan::engine
