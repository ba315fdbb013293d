#pragma once
// How a runtime stores the model states: bytes an element, and what each ZeRO stage divides.

#include <cstdint>

#include "cost_model/question/problem.hpp"
#include "cost_model/question/units.hpp"

namespace zeroplan {

/// How a runtime rounds up what it divides over the data-parallel group.
enum class Padding {
  none,
  aligned_buffer,   // Megatron-Core: each tensor from a multiple of 64, the buffer to lcm(N, 128)
  divided_buckets,  // Megatron-FSDP: each bucket until every part is whole rows of all its matrices
  flat_group,       // DeepSpeed 1 and 2: the flat group to 2N
  each_tensor,      // DeepSpeed 3: each tensor to N
  first_dimension,  // FSDP2: each tensor in whole rows
  each_unit,  // zeroplan: words, positions, layer, head each until every part is 512 B aligned
};

/// Bytes an element of each model state while it exists, and whether ZeRO divides it.
struct StateRecipe {
  std::int64_t parameter_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t master_bytes = 0;         // 0: the parameters are the master copy
  std::int64_t first_moment_bytes = 4;   // momentum
  std::int64_t second_moment_bytes = 4;  // Adam's running square
  std::int64_t step_gradient_bytes =
      0;  // higher-precision copy of the gradients, or of moments, during the optimizer step
  // Bytes an element of all the optimizer keeps, master copy included; 0: by the optimizer's kind.
  std::int64_t optimizer_bytes = 0;
  bool shard_parameters = false;
  bool shard_gradients = false;
  bool shard_optimizer = false;
  std::int64_t outer_ranks = 1;  // replicas that divide the optimizer's shard once more
  Padding padding = Padding::none;
  friend bool operator==(const StateRecipe&, const StateRecipe&) = default;
};

/// Bytes an element of the parameters as the matrix units read them, and of their fp32 master copy:
/// none with fp32, where they are their own. fp8 keeps bf16 parameters, of which 8-bit copies are
/// made, unless the runtime keeps matrices in 8 bits.
struct StateWidths {
  std::int64_t compute = 0;
  std::int64_t master = 0;
};
StateWidths state_widths(Precision precision);

/// The recipe of mixed precision as the ZeRO paper has it.
StateRecipe textbook_recipe(const Problem& problem);

/// The recipe of this runtime (runtime/<name>/states.cpp) at this precision and ZeRO stage.
/// Sources: ZeRO (arXiv 1910.02054) section 3.1; Megatron-LM
/// docs/user-guide/features/dist_optimizer.md and core/distributed/param_and_grad_buffer.py;
/// DeepSpeed runtime/engine.py, zero/stage_1_and_2.py, zero/stage3.py; torchtitan
/// distributed/fsdp.py.
StateRecipe state_recipe(const Problem& problem);

/// Whether Megatron-Core keeps the matrices of the layers in 8 bits, without a 16-bit form
/// (--fp8-param-gather): shards and what is gathered of them have one byte an element.
bool keeps_8_bit_matrices(const Problem& problem);

/// Copies of a quantized matrix that products of both directions read: two where each has scales
/// along its own direction (mxfp8, blockwise, nvfp4) or where the tensor cores take 8-bit operands
/// in one orientation alone (TransformerEngine @d0067d0da common/transformer_engine.cpp
/// nvte_is_non_tn_fp8_gemm_supported), else one.
std::int64_t copies_of_matrix(const Problem& problem);

/// Bytes of so many quantized elements with their scales: one byte each and one for 32 in mxfp8,
/// half a byte and one for 16 in nvfp4, else one byte; scales of larger blocks do not count
/// (TransformerEngine @d0067d0da pytorch/tensor/mxfp8_tensor.py, nvfp4_tensor.py). Assumes
/// Megatron-Core.
Bytes quantized_bytes(const Problem& problem, std::int64_t elements);

/// Bytes an element of the buffer in which Megatron-Core sums gradients (Megatron-LM
/// training/arguments.py: fp32 with bf16 unless --grad-reduce-in-bf16, the parameters' with fp16;
/// of Megatron-FSDP, since Megatron-Core 0.17, what --megatron-fsdp-main-grads-dtype says, by
/// default the parameters', param_and_grad_buffer.py of core/distributed/fsdp/src/megatron_fsdp
/// @b969f7642c).
std::int64_t main_gradient_bytes(const Problem& problem);

/// Bytes an element of what products of one micro-batch add to, and ranks reduce: the same, but for
/// a bucket of Megatron-FSDP, whose type is its own (--megatron-fsdp-grad-comm-dtype).
std::int64_t reduced_gradient_bytes(const Problem& problem);

}  // namespace zeroplan
