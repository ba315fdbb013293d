#pragma once
// What mamba_ssm's convolution and scan of a state space allocate, whoever calls them.
// Source: state-spaces/mamba @e9594ce1 mamba_ssm/ops/triton/{ssd_combined,ssd_chunk_scan,
// layernorm_gated}.py: MambaSplitConv1dScanCombinedFn, one function of autograd that keeps what it
// was given and what its scan made, and runs the rest again.

#include <functional>

#include "cost_model/program/block.hpp"
#include "cost_model/question/model.hpp"

namespace zeroplan {

/// Sizes on one rank for one micro-batch.
struct StateScan {
  StateSpaceSpec mixer;  // with the heads and groups that the kernels are given
  std::int64_t element;  // bytes of an activation
  std::int64_t tokens;
  std::int64_t samples;
  bool gates;  // the scan applies the gate itself, where no norm stands between

  Bytes each(std::int64_t width) const { return Bytes{element * width * tokens}; }
  Bytes projected() const { return each(mixer.projected()); }
  Bytes features() const { return each(mixer.features()); }
  Bytes mixed() const { return each(mixer.mixed()); }
  /// Of the norm of each group's features, one a token; and of its weight's gradient, in parts.
  Bytes norm_statistics() const;
  Bytes norm_weight_parts() const;
};

/// Writes the convolution and the scan. `make_outputs` allocates what it gives; returned is what
/// stays until the function of autograd is done.
TensorList write_state_scan(BlockWriter& w,
                            const StateScan& z,
                            const std::function<void()>& make_outputs);

/// All that the scan's backward pass allocates beside the gradients that it was given to write to.
void write_state_scan_backward(BlockWriter& w, const StateScan& z);

}  // namespace zeroplan
