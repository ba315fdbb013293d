#pragma once
// A GPU as a rank's device: one stream, own kernels, matrix products by cuBLASLt.

#include <optional>

#include "validator/cuda/meter.hpp"
#include "validator/cuda/products.hpp"
#include "validator/device/device.hpp"

namespace zeroplan::engine {

/// Used by the thread that made it. Every failure of a CUDA call is an EnvironmentError with its
/// name. Operations are enqueued; downloads, and what returns a number, wait for them.
class CudaDevice final : public Device {
 public:
  /// `meter` outlives the device and all its memory.
  explicit CudaDevice(Meter& meter);

  const CudaStream& stream() const { return *stream_; }
  Meter& meter() const { return meter_; }

  bool holds_data() const override { return true; }
  Stopwatch::Point now() override;
  void* allocate(std::int64_t bytes) override;
  void release(void* memory) noexcept override;
  void use_workspace(Wide workspace) override { workspace_ = workspace; }
  std::int64_t attention_scratch(const AttentionShape& s) const override {
    return s.samples * s.sequence * s.heads;  // a number a row, of the gradient
  }
  void upload(void* to, const void* from, std::int64_t bytes) override;
  void download(void* to, const void* from, std::int64_t bytes) override;
  void zero(void* memory, std::int64_t bytes) override;

  void do_linear(ConstHalf x, ConstHalf w, Half y) override;
  void do_linear_input_gradient(ConstHalf dy, ConstHalf w, Half dx) override;
  void do_linear_weight_gradient(ConstHalf dy, ConstHalf x, Half dw) override;
  void add_bias(Half y, ConstHalf bias) override;
  void bias_gradient(ConstHalf dy, Half dbias) override;
  void add(Half to, ConstHalf from) override;
  void copy(Half to, ConstHalf from) override;

  void norm(ConstHalf x, const NormWeights& w, Half y, Wide statistics) override;
  void norm_gradient(ConstHalf dy,
                     ConstHalf x,
                     ConstWide statistics,
                     const NormWeights& w,
                     ConstHalf residual,
                     Half dx,
                     const NormWeights& dw) override;

  void rotate(Half qkv, const AttentionShape& shape, bool back) override;
  void attention(ConstHalf qkv, const AttentionShape& shape, Half y, Wide statistics) override;
  void attention_gradient(ConstHalf dy,
                          ConstHalf qkv,
                          ConstHalf y,
                          ConstWide statistics,
                          const AttentionShape& shape,
                          Half dqkv) override;

  void activation(ConstHalf x, Half y) override;
  void activation_gradient(ConstHalf dy, ConstHalf x, Half dx) override;

  void embed(View<const std::int32_t> ids,
             ConstHalf table,
             const VocabularyPart& part,
             Half y) override;
  void embed_gradient(View<const std::int32_t> ids,
                      ConstHalf dy,
                      const VocabularyPart& part,
                      Half dtable) override;
  void add_positions(Half y, std::int64_t first, ConstHalf table, std::int64_t sequence) override;
  void positions_gradient(ConstHalf dy, Half dtable, std::int64_t sequence) override;

  void loss_maximum(ConstHalf logits, const VocabularyPart& part, Wide maximum) override;
  void loss_sums(ConstHalf logits,
                 View<const std::int32_t> targets,
                 const VocabularyPart& part,
                 const LossSums& sums) override;
  double loss_gradient(Half logits,
                       View<const std::int32_t> targets,
                       const VocabularyPart& part,
                       const LossSums& sums,
                       float scale) override;

  void adam(ConstHalf gradients,
            const AdamStep& step,
            Wide master,
            Wide first,
            Wide second,
            Half parameters) override;

 private:
  Meter& meter_;
  std::optional<CudaStream> stream_;
  std::optional<Products> products_;
  Wide workspace_;
};

}  // namespace zeroplan::engine
