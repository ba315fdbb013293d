// When do the ranks finish? Front door: PipelineClock::finished.
#include "cost_model/step/pipeline_clock.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>

#include "cost_model/step/messages.hpp"
#include "cost_model/step/one_f_one_b.hpp"
#include "cost_model/step/rounds.hpp"

namespace zeroplan {
namespace {

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
