// In which order do passes run when weight gradients wait? Front door: zb_h1.
#include "cost_model/schedule/split.hpp"

#include <algorithm>

#include "cost_model/schedule/split_order.hpp"

namespace zeroplan {
namespace {

// `warm_up` forward passes, then one forward pass and one input gradient in turn; a weight gradient
// runs once more than `lag` are put off.
std::vector<Pass> lagging(std::int64_t micro_batches, std::int64_t warm_up, std::int64_t lag) {
  SplitOrder order(micro_batches);
  for (std::int64_t i = 0; i < std::min(warm_up, micro_batches); ++i) order.forward(0);
  for (std::int64_t i = 0; i < micro_batches; ++i) {
    order.forward(0);
    order.input_gradient(0);
    if (order.put_off() > lag) order.weight_gradient();
  }
  order.every_weight_gradient();
  return order.take();
}

}  // namespace

std::vector<Pass> zb_h1(const Pipeline& pipeline, std::int64_t rank) {
  return lagging(pipeline.micro_batches, pipeline.ranks - 1 - rank, rank);
}

std::vector<Pass> zb_h2(const Pipeline& pipeline, std::int64_t rank) {
  return lagging(pipeline.micro_batches, 2 * (pipeline.ranks - 1 - rank), 2 * rank);
}

std::vector<Pass> zb_v(const Pipeline& pipeline, std::int64_t rank) {
  const std::int64_t behind = pipeline.ranks - rank;  // this rank and those after it
  // A step shorter than the warm-up runs as the first micro-batches of one that is not.
  const std::int64_t micro_batches = std::max(2 * pipeline.ranks - 1, pipeline.micro_batches);
  SplitOrder order(pipeline.micro_batches);
  const auto both_gradients = [&order](std::int32_t chunk) {
    order.input_gradient(chunk);
    order.weight_gradient(chunk);
  };
  for (std::int64_t i = 0; i < 2 * behind - 1; ++i) order.forward(0);
  for (std::int64_t i = 0; i < rank; ++i) {
    order.forward(1);
    order.forward(0);
  }
  for (std::int64_t i = 0; i < behind; ++i) {
    order.forward(1);
    both_gradients(1);
  }
  while (order.forwards(1) < micro_batches) {
    if (order.forwards(0) < micro_batches) order.forward(0);
    both_gradients(0);
    order.forward(1);
    both_gradients(1);
  }
  for (std::int64_t i = 0; i < rank; ++i) {
    order.input_gradient(0);
    order.input_gradient(1);
  }
  for (std::int64_t i = 0; i < behind; ++i) {
    order.input_gradient(0);
    order.weight_gradient(0);
  }
  for (std::int64_t i = 0; i < rank; ++i) order.weight_gradient(1);
  order.every_weight_gradient();
  return order.take();
}

std::vector<Pass> dualpipe(const Pipeline& pipeline, std::int64_t rank) {
  const std::int64_t half = pipeline.ranks / 2;
  const std::int64_t from_end = std::min(rank, pipeline.ranks - 1 - rank);
  const std::int64_t to_middle = half - from_end - 1;
  const std::int64_t each = pipeline.micro_batches / 2;
  // The direction that begins nearer to this rank is ahead of the other here.
  const std::int32_t near = rank < half ? 0 : 1;
  const std::int32_t far = 1 - near;
  SplitOrder order(each, each);

  for (std::int64_t i = 0; i < 2 * to_middle; ++i) order.forward(near);
  for (std::int64_t i = 0; i <= from_end; ++i) {
    order.forward(near);
    order.forward(far);
  }
  for (std::int64_t i = 0; i < to_middle; ++i) {
    order.input_gradient(far);
    order.weight_gradient();
    order.forward(far);
  }
  for (std::int64_t i = 0; i < each - pipeline.ranks + from_end + 1; ++i) {
    if (i == 0 && to_middle == 0) {
      // The middle ranks send the first output at once, which shortens the bubble.
      order.forward(near);
      order.backward(far);
    } else {
      order.forward_and_backward(near, far);
    }
    order.forward_and_backward(far, near);
  }
  for (std::int64_t i = 0; i < to_middle; ++i) {
    order.backward(far);
    order.forward_and_backward(far, near);
  }
  // The second half of these puts its weight gradients off.
  for (std::int64_t i = 0; i < 2 * (from_end + 1); ++i) {
    const std::int32_t chunk = i % 2 == 0 ? far : near;
    i > from_end ? order.input_gradient(chunk) : order.backward(chunk);
  }
  for (std::int64_t i = 0; i < to_middle; ++i) {
    order.weight_gradient();
    order.input_gradient(near);
  }
  order.every_weight_gradient();
  return order.take();
}

}  // namespace zeroplan
