// When do the ranks of a pipeline finish? Front door: run_in_order.
#include "cost_model/step/ordered_passes.hpp"

#include <algorithm>
#include <cassert>

namespace zeroplan {
namespace {

constexpr double not_yet = -1;

class OrderedPasses {
 public:
  OrderedPasses(const Pipeline& pipeline,
                const std::vector<StageTime>& stages,
                double message,
                bool blocking)
      : pipeline_(pipeline),
        stages_(stages),
        exchange_(blocking ? message : 0),
        message_(blocking ? 0 : message),
        ends_(
            static_cast<std::size_t>(2 * pipeline.ranks * pipeline.chunks * pipeline.micro_batches),
            not_yet) {
    for (std::int64_t rank = 0; rank < pipeline.ranks; ++rank) {
      ranks_.push_back({.order = passes(pipeline, rank)});
    }
  }

  PipelineTime run() {
    // Forward passes come down the ranks and backward passes up: each sweep goes the other way.
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int64_t rank = 0; rank < pipeline_.ranks; ++rank) moved |= advance(rank);
      for (std::int64_t rank = pipeline_.ranks - 1; rank >= 0; --rank) moved |= advance(rank);
    }
    PipelineTime time;
    for (const Rank& rank : ranks_) {
      assert(rank.next == rank.order.size());  // a legal schedule never waits in a circle
      time.ranks.push_back(rank.time);
      time.seconds = std::max(time.seconds, rank.time.finished);
    }
    return time;
  }

 private:
  struct Rank {
    std::vector<Pass> order;
    std::size_t next = 0;
    RankTime time;
  };

  // Of an output, or of the gradient of an input.
  double& end(const Place& place, bool gradient, std::int64_t micro_batch) {
    const std::int64_t chunk = place.rank * pipeline_.chunks + place.chunk;
    return ends_[static_cast<std::size_t>((2 * chunk + gradient) * pipeline_.micro_batches +
                                          micro_batch)];
  }

  // When all that the pass reads has arrived; not_yet if some has not been computed.
  double arrival(std::int64_t rank, const Pass& pass) {
    double latest = 0;
    for (const Needed& needed : needs(pipeline_, rank, pass)) {
      const double made = end(needed.place, needed.kind != PassKind::forward, needed.micro_batch);
      if (made == not_yet) return not_yet;
      latest = std::max(latest, needed.place.rank == rank ? made : made + message_);
    }
    return latest;
  }

  bool advance(std::int64_t index) {
    Rank& rank = ranks_[static_cast<std::size_t>(index)];
    const std::vector<PassTime>& chunks = stages_[static_cast<std::size_t>(index)].chunks;
    const std::size_t before = rank.next;
    while (rank.next < rank.order.size()) {
      // Passes that run as one wait for what any of them reads, and end together.
      std::size_t last = rank.next;
      while (rank.order[last].with_next) ++last;
      double ready = 0;
      double seconds = 0;
      for (std::size_t i = rank.next; i <= last && ready != not_yet; ++i) {
        const Pass& pass = rank.order[i];
        const double arrived = arrival(index, pass);
        ready = arrived == not_yet ? not_yet : std::max(ready, arrived);
        seconds += exchange_ + chunks[static_cast<std::size_t>(pass.chunk)].of(pass.kind);
      }
      if (ready == not_yet) break;
      rank.time.finished = std::max(rank.time.finished, ready) + seconds;
      rank.time.busy += seconds;
      for (; rank.next <= last; ++rank.next) {
        const Pass& pass = rank.order[rank.next];
        const Place place{index, pass.chunk};
        const double finished = rank.time.finished;
        if (pass.kind == PassKind::forward) end(place, false, pass.micro_batch) = finished;
        if (makes_input_gradient(pass)) end(place, true, pass.micro_batch) = finished;
      }
    }
    return rank.next > before;
  }

  const Pipeline& pipeline_;
  const std::vector<StageTime>& stages_;
  double exchange_;           // with the neighbours, after each pass
  double message_;            // on its way while ranks compute
  std::vector<double> ends_;  // of what each pass makes
  std::vector<Rank> ranks_;
};

}  // namespace

PipelineTime run_in_order(const Pipeline& pipeline,
                          const std::vector<StageTime>& ranks,
                          double message,
                          bool blocking) {
  return OrderedPasses(pipeline, ranks, message, blocking).run();
}

}  // namespace zeroplan
