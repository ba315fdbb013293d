#pragma once
// Private to kernel: the sizes that traffic is counted in, and what of the residual stream layers
// and both ends of a model move alike.

#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/layer_traffic.hpp"
#include "cost_model/rank/token_shape.hpp"

namespace zeroplan {

/// On one rank, for one micro-batch.
struct TrafficSizes {
  const Problem& problem;
  KernelHabits habits;
  TokenShape token;
  std::int64_t tokens;       // of the micro-batch
  std::int64_t norm_tokens;  // of those, in the regions that sequence parallelism divides

  Bytes residual(std::int64_t passes) const {
    return Bytes{passes * token.element * token.hidden * norm_tokens};
  }
  Bytes features(std::int64_t passes, std::int64_t width) const {
    return Bytes{passes * token.element * width * tokens};
  }
};

TrafficSizes traffic_sizes(const Problem& problem);

/// Appends a norm of the residual stream, or of as many bytes.
void add_norm(std::vector<Traffic>& out, const TrafficSizes& s, Module module);
void add_norm(std::vector<Traffic>& out, const TrafficSizes& s, Module module, Bytes normed);

/// A sum with the residual stream, and the dropout before it.
Traffic sum_traffic(const TrafficSizes& s, Module module);

/// Appends what ranks of tensor parallelism copy of the hidden state of all tokens to put it in
/// their order, so many times a pass.
void add_rank_order(std::vector<Traffic>& out, const TrafficSizes& s, std::int64_t times);

}  // namespace zeroplan
