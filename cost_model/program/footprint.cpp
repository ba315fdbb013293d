// What does a block leave and need at most? Front door: fold.
#include "cost_model/program/footprint.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace zeroplan {

namespace {

bool is_borrowed(Tensor tensor, Borrowed borrowed) {
  return (borrowed.output_grad && tensor == Block::output_grad) ||
         (borrowed.input && tensor == Block::input);
}

// Sums up events of a pass, once for each of the first `sizes.size()` ways to borrow.
void sum_bytes(const Block& block, std::span<const Event> events, std::span<PassBytes> sizes) {
  constexpr std::array<Borrowed, 4> ways{
      {{}, {.input = true}, {.output_grad = true}, {.input = true, .output_grad = true}}};
  for (const Event& event : events) {
    if (!event.is_of_tensor()) continue;
    const Bytes bytes = block.tensors[static_cast<std::size_t>(event.index)].bytes;
    if (event.allocates()) {
      for (PassBytes& size : sizes) {
        size.left += bytes;
        size.peak = std::max(size.peak, size.left);
      }
      continue;
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!is_borrowed(event.index, ways[i])) sizes[i].left -= bytes;
    }
  }
}

}  // namespace

Footprint fold(const Block& block,
               const std::vector<Event>& events,
               Phase phase,
               Borrowed borrowed,
               BackwardPart part) {
  Footprint result;
  result.peak.phase = phase;
  Bytes allocated;
  Bytes highest;
  for (const Event& event : events) {
    if (event.begins_phase()) phase = static_cast<Phase>(event.index);
    if (!belongs(event, part) || !event.is_of_tensor()) continue;
    const TensorSpec& spec = block.tensors[static_cast<std::size_t>(event.index)];
    if (event.allocates()) {
      result.left[spec.category] += spec.bytes;
      allocated += spec.bytes;
      if (allocated <= highest) continue;
      highest = allocated;
      result.peak = {result.left, phase, spec.name};
    } else if (!is_borrowed(event.index, borrowed)) {
      result.left[spec.category] -= spec.bytes;
      allocated -= spec.bytes;
    }
  }
  return result;
}

// A copy is no longer than it must be.
FoldedBlock::FoldedBlock(Block block, bool of_loss) : loss(of_loss), block_(block) {
  sum_up(std::move(block));
}

FoldedBlock::FoldedBlock(std::function<Block()> write, bool of_loss)
    : loss(of_loss), write_(std::move(write)) {
  sum_up(write_());
}

void FoldedBlock::sum_up(Block&& block) {
  forward = fold(block, block.forward, forward_phase(*this));
  bytes = block_bytes(block);
  reuse(std::move(block));
}

Footprint FoldedBlock::forward_with(Borrowed borrowed) const {
  if (!borrowed.input) return forward;
  return fold(block(), block().forward, forward_phase(*this), {.input = true});
}

Footprint FoldedBlock::backward_with(BackwardPart part, Borrowed borrowed) const {
  return fold(block(), block().backward, backward_phase(*this), borrowed, part);
}

FirstWeights first_weights(const Block& block) {
  const auto first = [&](bool of_mlp) {
    const auto found = std::ranges::find_if(block.backward, [&](const Event& event) {
      if (!event.computes()) return false;
      const auto [module, product, times] = event.kernel();
      return product == Product::weight_gradient &&
             (module == Module::fc1 || module == Module::fc2) == of_mlp;
    });
    return static_cast<std::size_t>(found - block.backward.begin());
  };
  return {first(true), first(false)};
}

BlockBytes block_bytes(const Block& block) {
  BlockBytes bytes{.output = block.tensors[Block::output].bytes};
  sum_bytes(block, block.forward, bytes.forward);
  const std::span<const Event> events(block.backward);
  const auto [mlp, other] = first_weights(block);
  bytes.mlp_first = mlp <= other;
  const std::array<std::size_t, 4> ends{0, std::min(mlp, other), std::max(mlp, other),
                                        events.size()};
  std::array<Bytes, 4> highest;
  for (std::size_t part = 0; part < 3; ++part) {
    sum_bytes(block, events.subspan(ends[part], ends[part + 1] - ends[part]), bytes.backward);
    for (std::size_t i = 0; i < highest.size(); ++i) {
      PassBytes& pass = bytes.backward[i];
      bytes.around_weights[i][part] = pass.peak;
      highest[i] = std::max(highest[i], pass.peak);
      pass.peak = part + 1 < 3 ? pass.left : highest[i];
    }
  }
  return bytes;
}

std::optional<BlockBytes> least_of(const BlockBytes& a, const BlockBytes& b) {
  if (a.mlp_first != b.mlp_first) return std::nullopt;
  BlockBytes least{.mlp_first = a.mlp_first, .output = std::min(a.output, b.output)};
  for (std::size_t i = 0; i < least.forward.size(); ++i) {
    least.forward[i] = {std::min(a.forward[i].left, b.forward[i].left),
                        std::min(a.forward[i].peak, b.forward[i].peak)};
  }
  for (std::size_t i = 0; i < least.backward.size(); ++i) {
    // A backward pass begins with what the forward pass left.
    const auto own = [i](const BlockBytes& block) { return block.forward[i % 2].left; };
    const auto lower = [&](Bytes of_a, Bytes of_b) {
      return std::min(own(a) + of_a, own(b) + of_b) - own(least);
    };
    least.backward[i] = {lower(a.backward[i].left, b.backward[i].left),
                         lower(a.backward[i].peak, b.backward[i].peak)};
    for (std::size_t part = 0; part < 3; ++part) {
      least.around_weights[i][part] = lower(a.around_weights[i][part], b.around_weights[i][part]);
    }
  }
  return least;
}

PassBytes forward_bytes(const Block& block) {
  PassBytes bytes;
  sum_bytes(block, block.forward, {&bytes, 1});
  return bytes;
}

}  // namespace zeroplan
