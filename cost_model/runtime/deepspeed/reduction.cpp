// Which gradients does stage 2 reduce together? Front door: gradient_reduction.
#include "cost_model/runtime/deepspeed/reduction.hpp"

#include <algorithm>
#include <numeric>

#include "cost_model/question/units.hpp"

namespace zeroplan {
namespace {

// Neighbours in the flat buffer.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t elements() const { return end - begin; }
};

// What is concatenated of gradients that are reduced together: a rank's neighbours are one slice,
// slices come together until they are more than a bucket, and one alone is not copied.
std::int64_t copied(const Range& range, std::int64_t part, std::int64_t bucket) {
  std::int64_t most = 0;
  std::int64_t sum = 0;
  std::int64_t slices = 0;
  for (std::int64_t at = range.begin; at < range.end;) {
    const std::int64_t slice = std::min(range.end, (at / part + 1) * part) - at;
    at += slice;
    sum += slice;
    if (++slices > 1) most = std::max(most, sum);
    if (sum > bucket) sum = slices = 0;
  }
  return most;
}

// Most elements of whole tensors that touch the part of one rank, of the ranks whose part reaches
// beyond `beyond`.
std::int64_t most_owned(const std::vector<std::int64_t>& sizes,
                        std::int64_t part,
                        std::int64_t beyond) {
  const std::int64_t all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::int64_t most = 0;
  std::size_t first = 0;
  std::int64_t start = 0;  // of tensor `first`
  for (std::int64_t low = 0; low < all && first < sizes.size(); low += part) {
    while (first < sizes.size() && start + sizes[first] <= low) start += sizes[first++];
    std::int64_t at = start;
    for (std::size_t i = first; i < sizes.size() && at < low + part; ++i) at += sizes[i];
    if (std::min(all, low + part) > beyond) most = std::max(most, at - start);
  }
  return most;
}

}  // namespace

std::int64_t Reduction::most_copied() const {
  return std::max({copy_in_head, copy_in_layers, copy_at_embedding, copy_at_end});
}

Reduction gradient_reduction(const std::vector<std::int64_t>& sizes,
                             std::size_t head_tensors,
                             std::int64_t ranks,
                             std::int64_t bucket) {
  Reduction made;
  if (sizes.empty()) return made;
  const std::int64_t all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const std::int64_t part = ceil_div(all, ranks);
  Range held{all, all};
  const auto empty_for = [&](std::int64_t next, std::int64_t& most) {
    if (held.elements() == 0 || held.elements() + next <= bucket) return false;
    most = std::max(most, copied(held, part, bucket));
    held.end = held.begin;
    return true;
  };
  for (std::size_t i = sizes.size() - 1; i > 0; --i) {
    const bool of_head = i + head_tensors >= sizes.size();
    empty_for(sizes[i], of_head ? made.copy_in_head : made.copy_in_layers);
    held.begin -= sizes[i];
  }
  made.owned = most_owned(sizes, part, 0);
  made.owned_early = most_owned(sizes, part, held.end);
  made.emptied_at_embedding = empty_for(sizes.front(), made.copy_at_embedding);
  held.begin = 0;
  made.copy_at_end = copied(held, part, bucket);
  return made;
}

}  // namespace zeroplan
