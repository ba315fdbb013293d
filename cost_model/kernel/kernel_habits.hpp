#pragma once
// How a runtime runs the kernels of a layer, where runtimes differ.

#include <cstdint>

#include "cost_model/kernel/attention.hpp"
#include "cost_model/kernel/time_constants.hpp"
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

/// PyTorch's loss: widen (2+4), log-softmax (4+4, and 4 for its maximum); backward of nll and
/// softmax (4+4, 4+4), narrow (4+2).
inline constexpr LossTraffic pytorch_loss{18, 22};
/// Logits that accelerate widens for whoever reads the model's output (2+4; accelerate utils/
/// operations.py convert_outputs_to_fp32), beside those of the loss.
inline constexpr LossTraffic widened_loss{24, 22};

/// Bytes that move for an element of a linear's operand to become one that quantized products read,
/// in both orders that they read. What is scaled by whole tensors is read for its largest value (2
/// bytes), narrowed (2 + 1) and turned for another product (1 + 1), as torchao does it
/// (float8/float8_scaling_utils.py).
struct CastTraffic {
  double input = 7;
  double input_again = 0;  // in the backward pass, for the weight gradient
  double gradient = 7;     // of the output
  double weight = 0;       // of each forward pass; 0: cast once a step, which is not counted
  double weight_again = 0;
};

/// The habits of a runtime; the defaults are those of plain PyTorch modules whose kernels are
/// fused.
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
  /// Layers are as Transformers writes them: each operator is a kernel of its own, and they are
  /// counted one by one, forward and as autograd runs them backward.
  bool spells_out_layers = false;
  /// Of layers that are fused otherwise, the norm before attention is spelt out in PyTorch.
  bool spells_out_input_norm = false;
  /// Spelt out layers run under autocast: the hidden state between linears is fp32, and each linear
  /// casts what it reads and its weight (PyTorch aten/src/ATen/autocast_mode.h).
  bool autocast = false;
  /// Autocast does not reach the products of experts, which are in the format of their weights.
  bool wide_experts = false;
  /// Megatron-LM's own kernels: what a fused one moves once goes through memory more often.
  bool local_kernels = false;
  /// Transformer Engine's kernels order tokens by expert.
  bool fuses_permutation = false;
  /// The bias of the experts' last product is weighted and added apart, one expert at a time.
  bool weights_expert_biases = false;
  /// Bounds of what the experts' activation reads are kernels of their own.
  bool clamps_apart = false;
  /// The host launches the experts' products one by one, once it has been told their tokens.
  bool launches_experts = false;
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
  CastTraffic casts;
  /// What tensor parallelism gathers for 8-bit products is cast before it travels, by each rank its
  /// part; else each casts what it gathered.
  bool casts_parts = true;
  /// How fast the quantized product of a forward pass is, beside one whose operands have one scale
  /// each.
  double forward_rate = 1;
  /// Weight gradients are products of 16 bits even where the other products are quantized.
  bool wide_weight_gradients = false;
  /// Parts that tensor parallelism gathered are joined, and those that it will reduce put in the
  /// order of the ranks, by kernels of their own.
  bool orders_ranks = false;
  /// What products and collectives that are cut into parts lose beside each other.
  double StepConstants::*parts_slowdown = &StepConstants::parts_slowdown;
  FlashKernel flash = FlashKernel::flash2;
  /// Flash attention leaves out what lies outside a sliding window.
  bool skips_outside_window = false;
  /// What attends in a sliding window takes it as a mask, which leaves nothing out.
  bool masks_windows = false;
  LossTraffic loss = pytorch_loss;
  Launcher launcher = Launcher::unmeasured;
};

/// The habits of the problem's runtime.
KernelHabits kernel_habits(const Problem& problem);

}  // namespace zeroplan
