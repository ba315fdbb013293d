// Beside which reduction in the layers lives most? Front door: highest.
#include "cost_model/runtime/deepspeed/reductions.hpp"

#include <algorithm>

#include "cost_model/question/units.hpp"

namespace zeroplan {
namespace {

// At its gradient; at the end where the block makes none of that size by itself.
Bytes level_at(const LayerLevels& levels, const Reduction& reduction, std::int64_t element) {
  const Bytes hand{round_up(element * reduction.elements, allocation_unit)};
  std::int64_t before = reduction.before;
  for (const LayerLevels::Gradient& gradient : levels.gradients) {
    if (gradient.bytes == hand && before-- == 0) return gradient.above;
  }
  return levels.at_end;
}

}  // namespace

std::vector<Reduction> reductions_in_layers(const std::vector<BucketCopy>& copies,
                                            const std::vector<std::int64_t>& sizes,
                                            const std::vector<std::size_t>& begins,
                                            const std::vector<std::int64_t>& live) {
  std::vector<Reduction> reductions;
  for (const BucketCopy& copy : copies) {
    if (copy.hand < begins.front() || copy.hand >= begins.back()) continue;
    const auto after = std::ranges::upper_bound(begins, copy.hand);
    const auto made = std::span(sizes).subspan(copy.hand + 1, *after - copy.hand - 1);
    const std::int64_t size = sizes[copy.hand];
    reductions.push_back({.layer = after - begins.begin() - 1,
                          .elements = size,
                          .before = std::ranges::count(made, size),
                          .copied = copy.elements,
                          .live = live.empty() ? 0 : live[copy.hand]});
  }
  return reductions;
}

LayerLevels levels_of(const Block& layer) {
  LayerLevels levels;
  const auto change = [&](const Event& event) {
    const Bytes bytes = layer.tensors[static_cast<std::size_t>(event.index)].bytes;
    return event.allocates() ? bytes : -bytes;
  };
  for (const Event& event : layer.forward) {
    if (event.is_of_tensor()) levels.left += change(event);
  }
  for (const Event& event : layer.backward) {
    if (!event.is_of_tensor()) continue;
    levels.at_end += change(event);
    if (event.allocates() && event.of_weights) {
      levels.gradients.push_back({change(event), levels.at_end});
    }
  }
  return levels;
}

std::optional<Reduction> highest(std::span<const Reduction> reductions,
                                 const std::vector<const LayerLevels*>& levels,
                                 std::int64_t element) {
  std::vector<Bytes> left;  // by a layer and those before it
  for (const LayerLevels* of : levels)
    left.push_back((left.empty() ? Bytes{} : left.back()) + of->left);
  std::optional<Reduction> most;
  Bytes top;
  for (const Reduction& reduction : reductions) {
    const auto layer = static_cast<std::size_t>(reduction.layer);
    const Bytes level = left[layer] + level_at(*levels[layer], reduction, element) +
                        Bytes{element * (reduction.copied + reduction.live)};
    if (!most || level > top) {
      most = reduction;
      top = level;
    }
  }
  return most;
}

}  // namespace zeroplan
