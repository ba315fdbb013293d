// Which core attention does a rank compute? Front doors: core_attention, own_keys,
// windowed_attention.
#include "cost_model/kernel/core_attention.hpp"

#include "cost_model/kernel/kernel_habits.hpp"

namespace zeroplan {
namespace {

// core/fusions/fused_softmax.py is_kernel_available: four rows of scores are worked on at once.
bool fused_softmax_takes(const Problem& p) {
  const std::int64_t batches = p.layout.micro_batch * p.model.attention.heads / p.layout.tp;
  return kernel_habits(p).fuses_softmax && batches % 4 == 0;
}

// Containers since 26.02 have cuDNN 9.18 (NVIDIA-NeMo/Megatron-Bridge @067f987df
// docs/releases/software-versions.md).
bool has_recent_kernels(const Problem& p) {
  constexpr std::int64_t with_recent = 2602;
  return p.runtime.megatron.container >= with_recent;
}

}  // namespace

AttentionShape core_attention(const Problem& problem) {
  const AttentionSpec& a = problem.model.attention;
  const Layout& l = problem.layout;
  return {.batch = l.micro_batch,
          .queries = ceil_div(problem.training.sequence_length, l.cp),
          .keys = problem.training.sequence_length,
          .heads = ceil_div(a.heads, l.tp),
          .kv_heads = ceil_div(a.mla ? a.heads : a.kv_heads, l.tp),
          .qk_width = query_width(a) / a.heads,
          .v_width = attention_output_width(a) / a.heads,
          .dropout = drops_attention(problem),
          .fused_softmax = fused_softmax_takes(problem),
          .eight_bit = problem.runtime.megatron.fp8_dot_product_attention,
          .block_scales = problem.runtime.megatron.fp8_recipe == Fp8Recipe::mxfp8,
          .recent = has_recent_kernels(problem)};
}

AttentionShape own_keys(const AttentionShape& whole) {
  AttentionShape own = whole;
  own.keys = whole.queries;
  return own;
}

AttentionShape keys_of_another(const AttentionShape& whole) {
  AttentionShape other = own_keys(whole);
  other.causal = false;
  other.keys = ceil_div(other.keys, std::int64_t{2});
  return other;
}

bool masks_windows(const Problem& problem) {
  const AttentionSpec& a = problem.model.attention;
  const bool reached =
      a.windowed_layers > 0 && problem.training.sequence_length >= a.sliding_window;
  const bool fused = problem.training.attention != AttentionKernel::unfused;
  return reached && fused && problem.layout.cp == 1 && kernel_habits(problem).masks_windows;
}

std::int64_t mask_elements(const Problem& problem) {
  return local_tokens(problem) * problem.training.sequence_length;
}

std::optional<AttentionShape> windowed_attention(const Problem& problem) {
  if (masks_windows(problem)) {
    AttentionShape shape = core_attention(problem);
    shape.causal = false;
    return shape;
  }
  const AttentionSpec& a = problem.model.attention;
  const bool inside = a.windowed_layers > 0 && a.sliding_window < problem.training.sequence_length;
  if (!inside || !kernel_habits(problem).skips_outside_window) return std::nullopt;
  AttentionShape shape = core_attention(problem);
  shape.window = a.sliding_window;
  return shape;
}

}  // namespace zeroplan
