#pragma once
// How does torchao multiply in 8 bits?
// Sources: pytorch/ao @36027d82d torchao/float8/config.py from_recipe_name, float8_linear.py
// matmul_with_hp_or_float8_args, float8_ops.py addmm_float8_unwrapped, float8_tensor_parallel.py.

#include "cost_model/kernel/kernel_habits.hpp"

namespace zeroplan {

/// torchtitan 6348d93d1: from this day on 8-bit linears are scaled by rows alone.
inline constexpr std::int64_t titan_scales_rows = 20260427;

/// The recipe that runs: as set, else torchtitan's of the day. Never Float8Recipe::recipe.
Float8Recipe float8_recipe(const Problem& problem);

/// Whether operands of 8-bit products have one scale each: then FSDP2 can gather weights in 8 bits.
bool scales_tensors(const Problem& problem);

/// Whether tensor parallelism casts what its 8-bit products read before it gathers it. torchtitan
/// looks for its converter under a name that it no longer has from 8a2686c4a to 9810191bb
/// (models/llama3/infra/parallelize.py enable_float8_linear): then it gathers 16 bits, and each
/// rank casts all of it.
bool gathers_eight_bit(const Problem& problem);

/// What casts move, an element; as it is by default where nothing is cast.
CastTraffic torchao_casts(const Problem& problem);

/// How fast the product of a forward pass is beside one of whole scales: CUTLASS's kernel of row
/// scales reaches 90 to 100 % of cuBLAS at most shapes (pytorch issue 147971).
double torchao_forward_rate(const Problem& problem);

}  // namespace zeroplan
