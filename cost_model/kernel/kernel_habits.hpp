#pragma once
// How a runtime runs the kernels of a layer, where runtimes differ.

#include <cstdint>

#include "cost_model/kernel/attention.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Who launches the kernels, as far as the host's time was measured.
enum class Launcher { unmeasured, transformer_engine, local_layers };

/// Bytes a logit that the loss moves, by counting the passes of an implementation over 16-bit
/// logits and fp32 copies.
struct LossTraffic {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};

/// PyTorch's: widen (2+4), log-softmax (4+4, and 4 for its maximum); backward of nll and softmax
/// (4+4, 4+4), narrow (4+2).
inline constexpr LossTraffic pytorch_loss{18, 22};

/// As they are here, those of plain PyTorch modules whose kernels are fused.
struct KernelHabits {
  /// Projections that read the same input are one matrix product, by the name of their module.
  bool fuses_projections = false;
  /// Bytes that a product writes and reads for an element of a weight gradient; 0: it writes the
  /// compute format.
  std::int64_t weight_gradient_bytes = 0;
  /// Bytes that move when an element of a 16-bit gradient is added to the main gradient by a kernel
  /// of its own; 0: none does in a layer, or in the embedding.
  std::int64_t layer_sum_bytes = 0;
  std::int64_t embedding_sum_bytes = 0;
  /// Each operator is a kernel of its own, norms and rotation spelt out in PyTorch among them.
  bool eager = false;
  /// The same as Transformers writes them, whose operators are counted one by one, forward and as
  /// autograd runs them backward.
  bool spells_out_layers = false;
  /// Megatron-LM's own kernels: what a fused one moves once goes through memory more often.
  bool local_kernels = false;
  /// Transformer Engine's kernels order tokens by expert.
  bool fuses_permutation = false;
  /// The bias of the experts' last product is weighted and added apart, one expert at a time.
  bool weights_expert_biases = false;
  /// Bounds of what the experts' activation reads are kernels of their own.
  bool clamps_apart = false;
  /// The host waits for the experts' first product before it launches their activation.
  bool awaits_experts = false;
  /// Rotation is spelt out in PyTorch.
  bool spells_out_rotation = false;
  /// Context parallelism gives each rank a part of the heads, and packs them before they travel.
  bool exchanges_heads = false;
  /// Context parallelism passes keys round a ring, and has a kernel for those of each rank.
  bool attends_by_ring = false;
  /// A fused softmax where attention is not.
  bool fuses_softmax = false;
  /// Bytes an element that making a copy for quantized products moves. torchao looks for the
  /// largest value (2 bytes), scales (2 + 1), and transposes for the weight gradient (1 + 1)
  /// (float8/float8_scaling_utils.py).
  double cast_bytes = 7;
  FlashKernel flash = FlashKernel::flash2;
  /// Flash attention leaves out what lies outside a sliding window.
  bool skips_outside_window = false;
  LossTraffic loss = pytorch_loss;
  Launcher launcher = Launcher::unmeasured;
};

/// Those of the problem's runtime.
KernelHabits kernel_habits(const Problem& problem);

}  // namespace zeroplan
