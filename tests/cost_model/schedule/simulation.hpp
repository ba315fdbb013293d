#pragma once
// A schedule in time: each rank runs its passes in order, each as soon as what it needs is there.

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "cost_model/schedule/order.hpp"

namespace zeroplan::tests {

struct PassTimes {
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;
  double transfer = 0;  // between ranks; the sender does not wait
};

inline double duration(const PassTimes& times, PassKind kind) {
  switch (kind) {
    case PassKind::forward:
      return times.forward;
    case PassKind::input_gradient:
      return times.input_gradient;
    case PassKind::weight_gradient:
      return times.weight_gradient;
    case PassKind::backward:
      break;
  }
  return times.input_gradient + times.weight_gradient;
}

/// The longest time between a rank's first and last pass; none if the ranks wait for one another
/// for ever.
inline std::optional<double> simulate(const Pipeline& pipeline, const PassTimes& times) {
  struct Rank {
    std::vector<Pass> order;
    std::size_t next = 0;
    double start = 0;
    double free_at = 0;
  };
  std::vector<Rank> ranks;
  for (std::int64_t r = 0; r < pipeline.ranks; ++r) ranks.push_back({passes(pipeline, r)});

  using Key = std::tuple<std::int64_t, std::int32_t, std::int32_t, bool>;  // true: a gradient
  std::map<Key, double> done;
  const auto ready = [&](std::int64_t rank, const Pass& pass) -> std::optional<double> {
    double at = ranks[static_cast<std::size_t>(rank)].free_at;
    for (const Needed& need : needs(pipeline, rank, pass)) {
      const auto found = done.find({need.place.rank, need.place.chunk, need.micro_batch,
                                    need.kind == PassKind::input_gradient});
      if (found == done.end()) return std::nullopt;
      at = std::max(at, found->second + (need.place.rank == rank ? 0 : times.transfer));
    }
    return at;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::int64_t r = 0; r < pipeline.ranks; ++r) {
      Rank& rank = ranks[static_cast<std::size_t>(r)];
      while (rank.next < rank.order.size()) {
        const std::size_t last = rank.next + rank.order[rank.next].with_next;
        std::optional<double> at = 0;
        double takes = 0;
        for (std::size_t i = rank.next; i <= last; ++i) {
          const std::optional<double> one = ready(r, rank.order[i]);
          at = at && one ? std::optional(std::max(*at, *one)) : std::nullopt;
          takes += duration(times, rank.order[i].kind);
        }
        if (!at) break;
        if (rank.next == 0) rank.start = *at;
        rank.free_at = *at + takes;
        for (; rank.next <= last; ++rank.next) {
          const Pass& pass = rank.order[rank.next];
          if (pass.kind != PassKind::weight_gradient)
            done[{r, pass.chunk, pass.micro_batch, pass.kind != PassKind::forward}] = rank.free_at;
        }
        moved = true;
      }
    }
  }
  double longest = 0;
  for (const Rank& rank : ranks) {
    if (rank.next < rank.order.size()) return std::nullopt;
    longest = std::max(longest, rank.free_at - rank.start);
  }
  return longest;
}

}  // namespace zeroplan::tests
