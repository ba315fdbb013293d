// What waits on the host? Front door: with_saved_on_host.
#include "cost_model/runtime/megatron/offload.hpp"

#include <algorithm>
#include <vector>

namespace zeroplan {
namespace {

// The block's input, and what its forward pass leaves for its backward pass.
std::vector<Tensor> saved_tensors(const Block& block) {
  std::vector<Tensor> alive{Block::input};
  for (const Event& event : block.forward) {
    if (!event.is_of_tensor() || event.index == Block::output) continue;
    if (event.allocates()) {
      alive.push_back(event.index);
    } else {
      std::erase(alive, event.index);
    }
  }
  return alive;
}

}  // namespace

std::int64_t offloaded_layers(const Problem& problem) {
  return problem.runtime.megatron.cpu_offloading_num_layers;
}

Block with_saved_on_host(Block block) {
  std::vector<Event> back;
  for (const Tensor tensor : saved_tensors(block)) {
    block.forward.push_back({.index = tensor, .kind = Event::Kind::free});
    back.push_back({.index = tensor, .kind = Event::Kind::allocate});
  }
  block.backward.insert(block.backward.begin(), back.begin(), back.end());
  return block;
}

Bytes saved_bytes(const Block& block) {
  Bytes sum;
  for (const Tensor tensor : saved_tensors(block)) {
    sum += block.tensors[static_cast<std::size_t>(tensor)].bytes;
  }
  return sum;
}

}  // namespace zeroplan
