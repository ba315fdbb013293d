// In which order do passes run? Front door: passes.
#include "cost_model/program/schedule.hpp"

#include <algorithm>

#include "cost_model/units.hpp"

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

std::vector<Pass> plain(std::int64_t micro_batches, bool backward) {
  std::vector<Pass> list;
  list.reserve(static_cast<std::size_t>(micro_batches));
  for (std::int32_t i = 0; i < micro_batches; ++i) list.push_back({backward, 0, i});
  return list;
}

// Groups of `group` micro-batches go through chunk after chunk; backwards through them in reverse.
std::vector<Pass> grouped(std::int64_t micro_batches,
                          std::int64_t chunks,
                          std::int64_t group,
                          bool backward) {
  std::vector<Pass> list;
  for (std::int64_t first = 0; first < micro_batches; first += group) {
    const std::int64_t last = std::min(first + group, micro_batches);
    for (std::int64_t c = 0; c < chunks; ++c) {
      const std::int64_t chunk = backward ? chunks - 1 - c : c;
      for (std::int64_t i = first; i < last; ++i) {
        list.push_back({backward, static_cast<std::int32_t>(chunk), static_cast<std::int32_t>(i)});
      }
    }
  }
  return list;
}

// As many micro-batches as the rank needs to run before its memory repeats.
std::int64_t representative_micro_batches(const Problem& problem, std::int64_t rank) {
  const std::int64_t all = std::max<std::int64_t>(1, micro_batches(problem));
  switch (problem.layout.schedule) {
    case Schedule::gpipe:
      return all;
    // Warm-up, two steady rounds, cool-down.
    case Schedule::interleaved:
      return std::min(all, round_up(4 * problem.layout.pp, interleaved_group(problem)));
    default:
      // Without a pipeline one tells all; a second shows what the allocator makes of it.
      return std::min(all, problem.layout.pp == 1 ? 2 : problem.layout.pp - rank + 2);
  }
}

}  // namespace

std::int64_t interleaved_group(const Problem& p) {
  const std::int64_t set = p.runtime.megatron.microbatch_group_size_per_vp_stage;
  return set > 0 ? set : p.layout.pp;
}

std::vector<Pass> passes(const Problem& problem, std::int64_t rank, std::int64_t micro_batches) {
  const Layout& l = problem.layout;
  const std::int64_t pp = l.pp;
  switch (l.schedule) {
    case Schedule::one_f_one_b: {
      const std::int64_t warm_up = std::min(pp - rank - 1, micro_batches);
      return one_each(plain(micro_batches, false), plain(micro_batches, true), warm_up);
    }
    case Schedule::gpipe:
      return one_each(plain(micro_batches, false), plain(micro_batches, true), micro_batches);
    case Schedule::interleaved: {
      const std::int64_t group = interleaved_group(problem);
      const std::int64_t all = micro_batches * l.vpp;
      const std::int64_t warm_up = std::min(2 * (pp - rank - 1) + (l.vpp - 1) * group, all);
      return one_each(grouped(micro_batches, l.vpp, group, false),
                      grouped(micro_batches, l.vpp, group, true), warm_up);
    }
    default:
      return {};
  }
}

std::vector<Pass> representative_passes(const Problem& problem, std::int64_t rank) {
  return passes(problem, rank, representative_micro_batches(problem, rank));
}

}  // namespace zeroplan
