// When do the ranks of a pipeline finish? Front door: OrderedPasses::finish.
#include "cost_model/pipeline/ordered_passes.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cassert>
#include <limits>

namespace zeroplan {
namespace {

// The first two operations of a list: what a rank's first pass comes after, and what a pass reads
// that waits for no other rank.
constexpr std::uint32_t start = 0;
constexpr std::uint32_t nothing = 1;
constexpr std::uint32_t not_yet = std::numeric_limits<std::uint32_t>::max();

// Which operation makes each output and each gradient of an input.
class Makers {
 public:
  explicit Makers(const Pipeline& p)
      : chunks_(p.chunks),
        micro_batches_(p.micro_batches),
        made_(static_cast<std::size_t>(2 * p.ranks * p.chunks * p.micro_batches), not_yet) {}

  std::uint32_t& at(const Place& place, bool gradient, std::int64_t micro_batch) {
    const std::int64_t chunk = place.rank * chunks_ + place.chunk;
    return made_[static_cast<std::size_t>((2 * chunk + gradient) * micro_batches_ + micro_batch)];
  }

 private:
  std::int64_t chunks_;
  std::int64_t micro_batches_;
  std::vector<std::uint32_t> made_;
};

// The result of another rank that a pass waits for. What it reads of its own rank is there before.
std::optional<Needed> needed_from_others(const Pipeline& pipeline,
                                         std::int64_t rank,
                                         const Pass& pass) {
  const Place here{rank, pass.chunk};
  std::optional<Needed> needed;
  if (pass.kind == PassKind::forward) {
    if (const auto place = previous_place(pipeline, here)) {
      needed = {*place, PassKind::forward, pass.micro_batch};
    }
  } else if (pass.kind != PassKind::weight_gradient) {
    if (const auto place = next_place(pipeline, here)) {
      needed = {*place, PassKind::input_gradient, pass.micro_batch};
    }
  }
  return needed && needed->place.rank != rank ? needed : std::nullopt;
}

// Finds the ends of some operations in a row among the `ends` of all; `own`: where the end of the
// first of them stands there.
template <class Seconds>
[[gnu::always_inline]] inline void find_ends(std::span<const PassOperation> operations,
                                             const Seconds* durations,
                                             double message,
                                             const Seconds* ends,
                                             Seconds* own) {
  using std::max;
  for (const PassOperation& o : operations) {
    *own++ = max(ends[o.reads] + message, ends[o.before]) + durations[o.duration];
  }
}

ZEROPLAN_WIDEST_VECTORS
void find_ends(std::span<const PassOperation> operations,
               const Lanes* durations,
               double message,
               const Lanes* ends,
               Lanes* own) {
  find_ends<Lanes>(operations, durations, message, ends, own);
}

}  // namespace

OrderedPasses::Index OrderedPasses::single(std::int64_t rank, const Pass& pass) const {
  const std::int64_t chunk = rank * chunks_ + pass.chunk;
  return static_cast<Index>(kinds_ * static_cast<std::size_t>(chunk) +
                            static_cast<std::size_t>(pass.kind));
}

OrderedPasses::OrderedPasses(const Pipeline& pipeline)
    : ranks_(pipeline.ranks),
      chunks_(pipeline.chunks),
      kinds_(splits_backward(pipeline.schedule) ? 4 : 2) {
  struct Rank {
    std::vector<Pass> order;
    std::size_t next = 0;
    std::vector<Index> operations;
  };
  std::vector<Rank> ranks;
  for (std::int64_t r = 0; r < ranks_; ++r) ranks.push_back({.order = passes(pipeline, r)});
  last_.assign(ranks.size(), start);
  const auto no_time = static_cast<Index>(kinds_ * static_cast<std::size_t>(ranks_ * chunks_));
  operations_.assign(2, {start, nothing, no_time});
  Makers makers(pipeline);

  // Runs the next pass of a rank, with those that run as one with it, if all that they read stands
  // among the first `known` operations.
  std::vector<Index> reads;
  const auto advance = [&](std::int64_t r, std::size_t known) {
    Rank& rank = ranks[static_cast<std::size_t>(r)];
    if (rank.next == rank.order.size()) return false;
    std::size_t end = rank.next;
    while (rank.order[end].with_next) ++end;
    reads.clear();
    for (std::size_t i = rank.next; i <= end; ++i) {
      const auto needed = needed_from_others(pipeline, r, rank.order[i]);
      const Index made =
          needed ? makers.at(needed->place, needed->kind != PassKind::forward, needed->micro_batch)
                 : nothing;
      if (made >= known) return false;
      reads.push_back(made);
    }
    Index& last = last_[static_cast<std::size_t>(r)];
    Index duration = single(r, rank.order[rank.next]);
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (i > 0) {
        const std::pair sum{duration, single(r, rank.order[rank.next + i])};
        const auto found = std::find(sums_.begin(), sums_.end(), sum);
        duration = no_time + 1 + static_cast<Index>(found - sums_.begin());
        if (found == sums_.end()) sums_.push_back(sum);
      }
      const bool done = i + 1 == reads.size();
      operations_.push_back({last, reads[i], done ? duration : no_time});
      last = static_cast<Index>(operations_.size() - 1);
      rank.operations.push_back(last);
    }
    for (; rank.next <= end; ++rank.next) {
      const Pass& pass = rank.order[rank.next];
      const Place place{r, pass.chunk};
      if (pass.kind == PassKind::forward) makers.at(place, false, pass.micro_batch) = last;
      if (makes_input_gradient(pass)) makers.at(place, true, pass.micro_batch) = last;
    }
    return true;
  };
  // One pass of each rank that can: neighbours in the list do not wait for each other, so that a
  // processor works on several at once.
  for (bool moved = true; moved;) {
    moved = false;
    const std::size_t known = operations_.size();
    for (std::int64_t r = 0; r < ranks_; ++r) moved |= advance(r, known);
  }
  for (const Rank& rank : ranks) {
    assert(rank.next == rank.order.size());  // a legal schedule never waits in a circle
    middle_.push_back(rank.operations[rank.operations.size() / 2]);
  }
}

template <class Seconds>
void OrderedPasses::finish(const std::vector<PassTimeOf<Seconds>>& passes,
                           double message,
                           const RankOfEach<Seconds>& through,
                           std::vector<Seconds>& finished,
                           std::vector<Seconds>& chains) const {
  static_assert(PassKind::forward == PassKind{0} && PassKind::backward == PassKind{1} &&
                PassKind::input_gradient == PassKind{2} &&
                PassKind::weight_gradient == PassKind{3});
  // One place for the lists of all pipelines, so that it stays near the processor.
  thread_local std::vector<Seconds> durations;  // by rank, chunk, kind; nothing; sums
  thread_local std::vector<Seconds> ends;       // of each operation
  durations.clear();
  durations.reserve(kinds_ * passes.size() + 1 + sums_.size());
  for (const PassTimeOf<Seconds>& chunk : passes) {
    durations.push_back(chunk.forward);
    durations.push_back(chunk.backward());
    if (kinds_ == 2) continue;
    durations.push_back(chunk.input_gradient);
    durations.push_back(chunk.weight_gradient);
  }
  durations.push_back(0);
  for (const auto& [a, b] : sums_) durations.push_back(durations[a] + durations[b]);
  if (ends.size() < operations_.size()) ends.resize(operations_.size());
  ends[start] = 0;
  ends[nothing] = -std::numeric_limits<double>::infinity();
  constexpr std::size_t given = nothing + 1;
  const std::span<const PassOperation> all = operations_;
  find_ends(all.subspan(given), durations.data(), message, ends.data(), ends.data() + given);
  finished.clear();
  for (const Index last : last_) finished.push_back(ends[last]);
  chains.clear();
  if (!keep_chains(through, durations.data(), message, ends.data())) return;
  for (const Index last : last_) chains.push_back(ends[last]);
}

// Leaves of the ends those of chains through the middle of the ranks `through`: what does not come
// after it never ends. False where `through` names no rank.
template <class Seconds>
bool OrderedPasses::keep_chains(const RankOfEach<Seconds>& through,
                                const Seconds* durations,
                                double message,
                                Seconds* ends) const {
  struct Start {
    Index operation;
    std::size_t timing;
    double end;
  };
  boost::container::small_vector<Start, lanes_in<Seconds>> starts;
  for (std::size_t i = 0; i < through.size(); ++i) {
    if (!through[i]) continue;
    const Index middle = middle_[*through[i]];
    starts.push_back({middle, i, timing(ends[middle], i)});
  }
  if (starts.empty()) return false;
  std::ranges::sort(starts, {}, &Start::operation);
  std::size_t done = starts.front().operation + 1;
  std::fill(ends, ends + done, Seconds(-std::numeric_limits<double>::infinity()));
  const std::span<const PassOperation> all = operations_;
  const auto find_up_to = [&](std::size_t end) {
    find_ends(all.subspan(done, end - done), durations, message, ends, ends + done);
    done = end;
  };
  for (const Start& start : starts) {
    find_up_to(start.operation + 1);
    timing(ends[start.operation], start.timing) = start.end;
  }
  find_up_to(all.size());
  return true;
}

template void OrderedPasses::finish(const std::vector<PassTimeOf<double>>&,
                                    double,
                                    const RankOfEach<double>&,
                                    std::vector<double>&,
                                    std::vector<double>&) const;
template void OrderedPasses::finish(const std::vector<PassTimeOf<Lanes>>&,
                                    double,
                                    const RankOfEach<Lanes>&,
                                    std::vector<Lanes>&,
                                    std::vector<Lanes>&) const;

}  // namespace zeroplan
