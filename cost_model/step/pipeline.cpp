// How long does the pipeline take? Front door: simulate_pipeline.
#include "cost_model/step/pipeline.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <span>

#include "cost_model/communication/collective_time.hpp"
#include "cost_model/communication/topology.hpp"
#include "cost_model/step/one_f_one_b.hpp"
#include "cost_model/step/pipeline_graph.hpp"
#include "cost_model/step/rounds.hpp"

namespace zeroplan {
namespace {

// The passes with the seconds that each of them waits where sends block: forward for the chunk
// after it, backward for the one before.
void add_exchanges(const Pipeline& pipeline, double seconds, std::vector<PassTime>& passes) {
  const std::size_t chunks = passes.size() / static_cast<std::size_t>(pipeline.ranks);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const Place place{static_cast<std::int64_t>(i / chunks), static_cast<std::int32_t>(i % chunks)};
    if (next_place(pipeline, place)) passes[i].forward += seconds;
    if (previous_place(pipeline, place)) passes[i].input_gradient += seconds;
  }
}

// Whether 1F1B's closed form says when the ranks end.
bool in_closed_form(const Problem& p, double message) {
  return p.layout.schedule == Schedule::one_f_one_b && (sends_block(p) || message == 0);
}

// Ranks with the seconds that blocking sends make them wait: all but the last for the next rank's
// input, all but the first for the one before's gradient.
class ExchangingRanks {
 public:
  ExchangingRanks(std::int64_t ranks, double message) : last_(ranks - 1), message_(message) {}

  // The place in the list of the first of them.
  std::size_t add(std::int64_t ranks, const PassTime& pass) {
    const std::size_t first = list_.size();
    const std::int64_t end = at_ + ranks;
    if (at_ == 0) put(1, pass);
    put(std::min(end, last_) - at_, pass);
    if (end > last_) put(end - at_, pass);
    return first;
  }
  std::span<const AlikeRanks> list() const { return {list_.data(), list_.size()}; }

 private:
  void put(std::int64_t ranks, const PassTime& pass) {
    if (ranks <= 0) return;
    list_.push_back({.ranks = ranks,
                     .forward = pass.forward + (at_ < last_ ? message_ : 0),
                     .backward = pass.backward() + (at_ > 0 ? message_ : 0)});
    at_ += ranks;
  }

  std::int64_t last_;
  double message_;
  std::int64_t at_ = 0;
  boost::container::small_vector<AlikeRanks, 8> list_;
};

PassesOfRanks passes_of(const std::vector<StageTime>& ranks) {
  PassesOfRanks passes;
  for (const StageTime& rank : ranks) {
    passes.ranks.push_back(1);
    passes.passes.insert(passes.passes.end(), rank.chunks.begin(), rank.chunks.end());
  }
  return passes;
}

// How busy each rank is, and its slack in the first rounds. `passes`: of each of the ranks' chunks,
// rank by rank.
std::vector<RankTime> work_of_ranks(const Problem& problem,
                                    std::vector<PassTime> passes,
                                    double message) {
  const bool blocking = sends_block(problem);
  const Rounds rounds = rounds_of(problem);
  const Pipeline few = pipeline_of(problem, rounds.few);
  if (blocking) add_exchanges(few, message, passes);
  std::vector<RankTime> ranks = PipelineGraph(few, passes, blocking ? 0 : message).run().ranks;
  const std::span<const PassTime> all = passes;
  const std::size_t chunks = passes.size() / ranks.size();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double round = busy_in_round(problem, rounds, all.subspan(i * chunks, chunks));
    ranks[i].busy += rounds.left * round;
  }
  return ranks;
}

void finish_in_closed_form(const Problem& problem,
                           const PassesOfRanks& passes,
                           double message,
                           std::vector<double>& finished) {
  ExchangingRanks exchanging(problem.layout.pp, message);
  boost::container::small_vector<std::size_t, 8> firsts;  // of each run: it ends last
  for (std::size_t i = 0; i < passes.ranks.size(); ++i) {
    firsts.push_back(exchanging.add(passes.ranks[i], passes.passes[i]));
  }
  const OneFOneB closed(exchanging.list(), micro_batches(problem));
  for (const std::size_t first : firsts) finished.push_back(closed.end(first));
}

std::size_t chunks_of_a_rank(const PassesOfRanks& passes) {
  return passes.passes.size() / passes.ranks.size();
}

// The passes of each rank.
void spread(const PassesOfRanks& passes, std::vector<PassTime>& of_ranks) {
  const auto chunks = static_cast<std::ptrdiff_t>(chunks_of_a_rank(passes));
  of_ranks.clear();
  auto own = passes.passes.begin();
  for (const std::int64_t ranks : passes.ranks) {
    for (std::int64_t i = 0; i < ranks; ++i) of_ranks.insert(of_ranks.end(), own, own + chunks);
    own += chunks;
  }
}

}  // namespace

bool sends_block(const Problem& p) {
  if (p.runtime.kind == Runtime::fsdp2) return false;
  if (p.layout.schedule <= Schedule::one_f_one_b) return true;
  return p.layout.schedule == Schedule::interleaved && p.runtime.kind == Runtime::megatron &&
         p.runtime.megatron.local_layers();
}

double message_seconds(const Problem& p) {
  const auto seconds = [&](std::string_view name, Collective what, Bytes payload) {
    for (const RankGroup& group : rank_groups(p)) {
      if (group.name != name) continue;
      return collective_time(what, p.cluster, group, payload).seconds;
    }
    return 0.0;
  };
  const Bytes message = pipeline_message(p);
  const double sent = seconds("pp", Collective::send_recv, message);
  return scatters_messages(p) ? sent + seconds("tp", Collective::all_gather, p.layout.tp * message)
                              : sent;
}

std::vector<std::vector<TimedPass>> timed_passes(const Problem& problem,
                                                 const std::vector<StageTime>& ranks,
                                                 double message,
                                                 std::int64_t micro_batches) {
  const bool blocking = sends_block(problem);
  const Pipeline pipeline = pipeline_of(problem, micro_batches);
  std::vector<PassTime> passes = passes_of(ranks).passes;
  if (blocking) add_exchanges(pipeline, message, passes);
  return PipelineGraph(pipeline, passes, blocking ? 0 : message).timed();
}

PipelineTime simulate_pipeline(const Problem& problem,
                               const std::vector<StageTime>& ranks,
                               double message) {
  const PassesOfRanks passes = passes_of(ranks);
  PipelineTime time{.ranks = work_of_ranks(problem, passes.passes, message)};
  PipelineClock clock;
  const std::vector<double>& finished = clock.finished(problem, passes, message);
  for (std::size_t i = 0; i < time.ranks.size(); ++i) {
    time.ranks[i].finished = finished[i];
    time.seconds = std::max(time.seconds, finished[i]);
  }
  if (message > 0) {
    const std::vector<double>& without = clock.finished(problem, passes, 0);
    time.messages = time.seconds - *std::max_element(without.begin(), without.end());
  }
  return time;
}

std::span<const std::vector<double>> PipelineClock::finished(const Problem& problem,
                                                             std::span<const PassesOfRanks> timings,
                                                             double message) {
  const bool closed = in_closed_form(problem, message);
  if (!closed) play(problem, timings, message);
  for (std::size_t i = 0; i < timings.size(); ++i) {
    of_runs_[i].clear();
    if (closed) {
      finish_in_closed_form(problem, timings[i], message, of_runs_[i]);
      continue;
    }
    auto rank = finished_[i].begin();
    for (const std::int64_t ranks : timings[i].ranks) {
      of_runs_[i].push_back(*std::max_element(rank, rank + ranks));
      rank += ranks;
    }
  }
  return {of_runs_.data(), timings.size()};
}

void PipelineClock::play(const Problem& problem,
                         std::span<const PassesOfRanks> timings,
                         double message) {
  const bool blocking = sends_block(problem);
  const double on_its_way = blocking ? 0 : message;
  const Rounds rounds = rounds_of(problem);
  const Pipeline few = pipeline_of(problem, rounds.few);
  for (std::size_t i = 0; i < timings.size(); ++i) {
    spread(timings[i], exchanged_[i]);
    if (blocking && message > 0) add_exchanges(few, message, exchanged_[i]);
  }
  const std::span<const std::vector<PassTime>> passes{exchanged_.data(), timings.size()};
  order(few).finish(passes, on_its_way, finished_);
  if (rounds.more == 0) return;
  const std::size_t chunks = chunks_of_a_rank(timings.front());
  bool more = false;  // were run too
  for (std::size_t i = 0; i < timings.size(); ++i) {
    const Pace pace =
        pace_of(problem, rounds, blocking ? exchanged_[i] : timings[i].passes, chunks, on_its_way);
    if (!pace.known && !more) {
      order(pipeline_of(problem, rounds.more)).finish(passes, on_its_way, more_finished_);
      more = true;
    }
    for (std::size_t rank = 0; rank < finished_[i].size(); ++rank) {
      double& end = finished_[i][rank];
      end = pace.known ? end + rounds.left * pace.round
                       : continued(end, more_finished_[i][rank], pace.round, rounds);
    }
  }
}

const OrderedPasses& PipelineClock::order(const Pipeline& pipeline) {
  const auto known = orders_.find(pipeline);
  if (known != orders_.end()) return known->second;
  constexpr std::size_t most_bytes = std::size_t{64} * 1024 * 1024;
  if (bytes_ > most_bytes) {
    orders_.clear();
    bytes_ = 0;
  }
  const OrderedPasses& made = orders_.try_emplace(pipeline, pipeline).first->second;
  bytes_ += made.size();
  return made;
}

}  // namespace zeroplan
