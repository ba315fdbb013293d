// When do the ranks finish? Front door: PipelineClock::finished.
#include "cost_model/pipeline/pipeline_clock.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <numeric>

#include "cost_model/pipeline/messages.hpp"
#include "cost_model/pipeline/one_f_one_b.hpp"
#include "cost_model/pipeline/rounds.hpp"

namespace zeroplan {
namespace {

// Whether 1F1B's closed form says when the ranks end.
bool in_closed_form(const Problem& p, double message) {
  return p.layout.schedule == Schedule::one_f_one_b && (sends_block(p) || message == 0);
}

// Ranks with the seconds that blocking sends make them wait: all but the last for the next rank's
// input, all but the first for the one before's gradient.
template <class Seconds>
class ExchangingRanks {
 public:
  ExchangingRanks(std::int64_t ranks, double message) : last_(ranks - 1), message_(message) {}

  // Adds ranks that take the same, and gives the place in the list of the first of them.
  std::size_t add(std::int64_t ranks, const PassTimeOf<Seconds>& pass) {
    const std::size_t first = list_.size();
    const std::int64_t end = at_ + ranks;
    if (at_ == 0) put(1, pass);
    put(std::min(end, last_) - at_, pass);
    if (end > last_) put(end - at_, pass);
    return first;
  }
  std::span<const AlikeRanks<Seconds>> list() const { return {list_.data(), list_.size()}; }

 private:
  void put(std::int64_t ranks, const PassTimeOf<Seconds>& pass) {
    if (ranks <= 0) return;
    list_.push_back({.ranks = ranks,
                     .forward = pass.forward + (at_ < last_ ? message_ : 0),
                     .backward = pass.backward() + (at_ > 0 ? message_ : 0)});
    at_ += ranks;
  }

  std::int64_t last_;
  double message_;
  std::int64_t at_ = 0;
  boost::container::small_vector<AlikeRanks<Seconds>, 8> list_;
};

template <class Seconds>
void finish_in_closed_form(const Problem& problem,
                           const PassesOfRanks<Seconds>& passes,
                           double message,
                           std::vector<Seconds>& finished) {
  ExchangingRanks<Seconds> exchanging(problem.layout.pp, message);
  boost::container::small_vector<std::size_t, 8> firsts;  // of each run: it ends last
  for (std::size_t i = 0; i < passes.ranks.size(); ++i) {
    firsts.push_back(exchanging.add(passes.ranks[i], passes.passes[i]));
  }
  finish_one_f_one_b(exchanging.list(), micro_batches(problem), {firsts.data(), firsts.size()},
                     finished);
}

template <class Seconds>
std::size_t chunks_of_a_rank(const PassesOfRanks<Seconds>& passes) {
  return passes.passes.size() / passes.ranks.size();
}

// The rank of each timing's run in `runs`, where that run is one rank and not the last.
template <class Seconds>
OrderedPasses::RankOfEach<Seconds> alone_before_last(
    const PassesOfRanks<Seconds>& passes, const OrderedPasses::RankOfEach<Seconds>& runs) {
  OrderedPasses::RankOfEach<Seconds> ranks;
  const auto first = passes.ranks.begin();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!runs[i] || *runs[i] + 1 == passes.ranks.size() || passes.ranks[*runs[i]] > 1) continue;
    const auto end = first + static_cast<std::ptrdiff_t>(*runs[i]);
    ranks[i] = static_cast<std::size_t>(std::accumulate(first, end, std::int64_t{0}));
  }
  return ranks;
}

// The passes of each rank.
template <class Seconds>
void spread(const PassesOfRanks<Seconds>& passes, std::vector<PassTimeOf<Seconds>>& of_ranks) {
  const auto chunks = static_cast<std::ptrdiff_t>(chunks_of_a_rank(passes));
  of_ranks.clear();
  auto own = passes.passes.begin();
  for (const std::int64_t ranks : passes.ranks) {
    for (std::int64_t i = 0; i < ranks; ++i) of_ranks.insert(of_ranks.end(), own, own + chunks);
    own += chunks;
  }
}

}  // namespace

template <class Seconds>
const std::vector<Seconds>& PipelineClock::finished(const Problem& problem,
                                                    const PassesOfRanks<Seconds>& passes,
                                                    double message) {
  using std::max;
  std::vector<Seconds>& of_runs = std::get<Scratch<Seconds>>(scratch_).of_runs;
  of_runs.clear();
  if (in_closed_form(problem, message)) {
    finish_in_closed_form(problem, passes, message, of_runs);
    return of_runs;
  }
  auto rank = play(problem, passes, message).begin();
  for (const std::int64_t ranks : passes.ranks) {
    Seconds last = *rank++;
    for (std::int64_t i = 1; i < ranks; ++i) last = max(last, *rank++);
    of_runs.push_back(last);
  }
  return of_runs;
}

template const std::vector<double>& PipelineClock::finished(const Problem&,
                                                            const PassesOfRanks<double>&,
                                                            double);
template const std::vector<Lanes>& PipelineClock::finished(const Problem&,
                                                           const PassesOfRanks<Lanes>&,
                                                           double);

// When the last pass of each rank ends, in seconds.
template <class Seconds>
const std::vector<Seconds>& PipelineClock::play(const Problem& problem,
                                                const PassesOfRanks<Seconds>& passes,
                                                double message) {
  auto& [finished, more_finished, chains, of_runs, of_ranks] = std::get<Scratch<Seconds>>(scratch_);
  const bool blocking = sends_block(problem);
  const double on_its_way = blocking ? 0 : message;
  const Rounds rounds = rounds_of(problem);
  const Pipeline few = pipeline_of(problem, rounds.few);
  spread(passes, of_ranks);
  if (blocking && message > 0) add_exchanges(few, message, of_ranks);
  if (rounds.more == 0) {
    order(few).finish(of_ranks, on_its_way, finished);
    return finished;
  }
  const auto pace = pace_of<Seconds>(problem, rounds, blocking ? of_ranks : passes.passes,
                                     chunks_of_a_rank(passes), on_its_way);
  const auto slowest = blocking ? pace.in_step : alone_before_last(passes, pace.in_step);
  order(few).finish(of_ranks, on_its_way, slowest, finished, chains);
  if (pace.all_known() && chains.empty()) {
    for (Seconds& end : finished) end += rounds.left * pace.round;
    return finished;
  }
  if (!pace.all_known()) {
    order(pipeline_of(problem, rounds.more)).finish(of_ranks, on_its_way, more_finished);
  }
  for (std::size_t rank = 0; rank < finished.size(); ++rank) {
    for (std::size_t i = 0; i < lanes_in<Seconds>; ++i) {
      double& end = timing(finished[rank], i);
      const double round = timing(pace.round, i);
      if (slowest[i]) {
        end = continued_in_step(end, timing(chains[rank], i), round, timing(pace.next, i), rounds);
      } else if (pace.known[i]) {
        end += rounds.left * round;
      } else {
        end = continued(end, timing(more_finished[rank], i), round, rounds);
      }
    }
  }
  return finished;
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
