// In which order do whole passes run? Front door: one_f_one_b.
#include "cost_model/schedule/whole.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

// `warm_up` forward passes, then one of each in turn, then the backward passes that are left. The
// two sequences hold the passes of each direction in order.
std::vector<Pass> one_each(const std::vector<Pass>& forward,
                           const std::vector<Pass>& backward,
                           std::int64_t warm_up) {
  std::vector<Pass> order;
  order.reserve(forward.size() + backward.size());
  const auto first = static_cast<std::size_t>(warm_up);
  order.insert(order.end(), forward.begin(), forward.begin() + warm_up);
  for (std::size_t i = first; i < forward.size(); ++i) {
    order.push_back(forward[i]);
    order.push_back(backward[i - first]);
  }
  order.insert(order.end(), backward.end() - warm_up, backward.end());
  return order;
}

// Groups of micro-batches go through chunk after chunk; backwards through them in reverse.
std::vector<Pass> grouped(const Pipeline& p, PassKind kind) {
  std::vector<Pass> list;
  list.reserve(static_cast<std::size_t>(p.micro_batches * p.chunks));
  for (std::int64_t first = 0; first < p.micro_batches; first += p.interleaving.group) {
    const std::int64_t last = std::min(first + p.interleaving.group, p.micro_batches);
    for (std::int64_t c = 0; c < p.chunks; ++c) {
      const std::int64_t chunk = kind == PassKind::backward ? p.chunks - 1 - c : c;
      for (std::int64_t i = first; i < last; ++i) {
        list.push_back({kind, static_cast<std::int32_t>(chunk), static_cast<std::int32_t>(i)});
      }
    }
  }
  return list;
}

std::vector<Pass> after(const Pipeline& p, std::int64_t warm_up) {
  return one_each(grouped(p, PassKind::forward), grouped(p, PassKind::backward),
                  std::min(warm_up, p.micro_batches * p.chunks));
}

}  // namespace

std::vector<Pass> gpipe(const Pipeline& pipeline) {
  return after(pipeline, pipeline.micro_batches);
}

std::vector<Pass> one_f_one_b(const Pipeline& pipeline, std::int64_t rank) {
  return after(pipeline, pipeline.ranks - rank - 1);
}

std::vector<Pass> interleaved(const Pipeline& pipeline, std::int64_t rank) {
  const auto& [group, ahead] = pipeline.interleaving;
  return after(pipeline, 2 * (pipeline.ranks - rank - 1) + (pipeline.chunks - 1) * group + ahead);
}

}  // namespace zeroplan
