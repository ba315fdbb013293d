#pragma once
// A device that holds nothing and computes nothing: a step on it only counts.

#include "validator/device/device.hpp"

namespace zeroplan::engine {

class DryDevice : public Device {
 public:
  bool holds_data() const override { return false; }
  void* allocate(std::int64_t) override { return nullptr; }
  void release(void*) noexcept override {}
  void use_workspace(Wide) override {}
  std::int64_t attention_scratch(const AttentionShape&) const override { return 0; }
  void upload(void*, const void*, std::int64_t) override {}
  void download(void*, const void*, std::int64_t) override {}
  void zero(void*, std::int64_t) override {}
  void do_linear(ConstHalf, ConstHalf, Half) override {}
  void do_linear_input_gradient(ConstHalf, ConstHalf, Half) override {}
  void do_linear_weight_gradient(ConstHalf, ConstHalf, Half) override {}
  void add_bias(Half, ConstHalf) override {}
  void bias_gradient(ConstHalf, Half) override {}
  void add(Half, ConstHalf) override {}
  void copy(Half, ConstHalf) override {}
  void norm(ConstHalf, const NormWeights&, Half, Wide) override {}
  void norm_gradient(ConstHalf,
                     ConstHalf,
                     ConstWide,
                     const NormWeights&,
                     ConstHalf,
                     Half,
                     const NormWeights&) override {}
  void rotate(Half, const AttentionShape&, bool) override {}
  void attention(ConstHalf, const AttentionShape&, Half, Wide) override {}
  void attention_gradient(
      ConstHalf, ConstHalf, ConstHalf, ConstWide, const AttentionShape&, Half) override {}
  void activation(ConstHalf, Half) override {}
  void activation_gradient(ConstHalf, ConstHalf, Half) override {}
  void embed(View<const std::int32_t>, ConstHalf, const VocabularyPart&, Half) override {}
  void embed_gradient(View<const std::int32_t>, ConstHalf, const VocabularyPart&, Half) override {}
  void add_positions(Half, std::int64_t, ConstHalf, std::int64_t) override {}
  void positions_gradient(ConstHalf, Half, std::int64_t) override {}
  void loss_maximum(ConstHalf, const VocabularyPart&, Wide) override {}
  void loss_sums(ConstHalf,
                 View<const std::int32_t>,
                 const VocabularyPart&,
                 const LossSums&) override {}
  double loss_gradient(
      Half, View<const std::int32_t>, const VocabularyPart&, const LossSums&, float) override {
    return 0;
  }
  void adam(ConstHalf, const AdamStep&, Wide, Wide, Wide, Half) override {}
};

}  // namespace zeroplan::engine
