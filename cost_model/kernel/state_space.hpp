#pragma once
// What the mixer of a state space computes and moves.

#include "cost_model/kernel/layer_traffic.hpp"

namespace zeroplan {

/// FLOPs of a token's forward pass beside both projections, as throughput is counted: seven for
/// each feature and element of its state (Megatron-LM @d98e8a64dd training/training.py
/// num_floating_point_operations, mamba_layer_flops, which leaves out the convolution).
double state_space_flops(const StateSpaceSpec& mixer);

/// Of an H100, among which mamba_ssm's kernels divide what they sum up.
inline constexpr std::int64_t multiprocessors = 132;

/// Parts in which gradients of what a group's heads share are summed, so that every multiprocessor
/// has some (mamba_ssm 2.3.2 ops/triton/ssd_chunk_state.py _chunk_state_bwd_db).
std::int64_t state_space_splits(const StateSpaceSpec& mixer,
                                std::int64_t tokens,
                                std::int64_t samples);

/// Copies around the kernels.
struct StateSpaceCopies {
  bool turns_samples = false;    // samples first, and tokens again
  bool exchanges_heads = false;  // by rank, joined and in the order of tokens
};

/// Appends what runs between the projections for so many tokens in so many samples: mamba_ssm's
/// kernels, the gated norm, and copies of what they read and give.
void add_state_space(std::vector<Traffic>& out,
                     const StateSpaceSpec& mixer,
                     std::int64_t tokens,
                     std::int64_t samples,
                     StateSpaceCopies copies);

}  // namespace zeroplan
