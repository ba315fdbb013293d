#pragma once
// Which layers are in 16 bits where the others have fewer, and what does such a layer read?

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cost_model/question/layer_kind.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// The question as a layer of this kind poses it: a wide one is in 16 bits, and knows nothing of
/// what the others' 8 or 4 bits decide. It refers to `problem`.
class OfKind {
 public:
  OfKind(const Problem& problem, LayerKind kind) : problem_(&problem) {
    if (!is_wide(kind) || !is_quantized(problem.training.precision)) return;
    wide_ = problem;
    wide_->training.precision = Precision::bf16;
    wide_->runtime.megatron.fp8_dot_product_attention = false;
    problem_ = &*wide_;
  }
  OfKind(const OfKind&) = delete;
  OfKind& operator=(const OfKind&) = delete;

  const Problem& operator*() const { return *problem_; }

 private:
  std::optional<Problem> wide_;
  const Problem* problem_;
};

/// Makes the layers at the model's ends wide, as many as Megatron-Core is told to
/// (core/fp8_utils.py is_first_last_bf16_layer).
inline void widen_ends(ModelSpec& model, const MegatronSettings& set) {
  if (!set.first_last_layers_bf16) return;
  std::vector<LayerKind> kinds;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const bool wide = layer < set.num_layers_at_start_in_bf16 ||
                      layer >= model.layers - set.num_layers_at_end_in_bf16;
    const LayerKind kind = narrow_kind(kind_of(model, layer));
    kinds.push_back(wide ? wide_kind(kind) : kind);
  }
  if (std::ranges::any_of(kinds, is_wide)) model.layer_kinds = std::move(kinds);
}

}  // namespace zeroplan
