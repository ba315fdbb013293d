// Was the prediction right? Front door: validate_on_host.
#include "validator/validation.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace zeroplan::engine {
namespace {

const Traffic& of_group(const std::vector<GroupTraffic>& list, std::string_view group) {
  static const Traffic none;
  for (const GroupTraffic& g : list) {
    if (g.group == group) return g.traffic;
  }
  return none;
}

std::int64_t calls(const Traffic& traffic, const Traffic::key_type& what) {
  const auto found = traffic.find(what);
  return found == traffic.end() ? 0 : found->second;
}

std::vector<ComparedCalls> compared_calls(const RankPrediction& predicted,
                                          const RankReport& measured) {
  std::vector<ComparedCalls> list;
  for (const GroupTraffic& group : measured.traffic) {
    const Traffic& said = of_group(predicted.traffic, group.group);
    std::set<Traffic::key_type> kinds;
    for (const Traffic* traffic : {&said, &group.traffic}) {
      for (const auto& [what, count] : *traffic) kinds.insert(what);
    }
    for (const auto& what : kinds) {
      list.push_back({group.group, group.ranks, what.first, Bytes{what.second}, calls(said, what),
                      calls(group.traffic, what)});
    }
  }
  return list;
}

bool same(const std::vector<Bf16>& a, const std::vector<Bf16>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Bf16)) == 0;
}

bool same_parameters(const RunReport& a, const RunReport& b) {
  return std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(),
                    [](const RankReport& x, const RankReport& y) {
                      return std::equal(x.own_parameters.begin(), x.own_parameters.end(),
                                        y.own_parameters.begin(), y.own_parameters.end(), same);
                    });
}

// Stages 2 and 3 reduce each micro-batch, 0 and 1 once a step.
bool reduce_alike(const Problem& p, ZeroStage other) {
  const auto often = [](ZeroStage zero) { return zero >= ZeroStage::gradients; };
  return micro_batches(p) == 1 || often(p.layout.zero) == often(other);
}

}  // namespace

RunOptions timed_where(RunOptions options, Asked asked) {
  options.timed = asked == Asked::seconds;
  return options;
}

bool ComparedRank::agrees() const {
  const bool alike = std::all_of(calls.begin(), calls.end(),
                                 [](const ComparedCalls& c) { return c.predicted == c.measured; });
  return alike && predicted.live == measured.live;
}

bool Validation::agrees() const {
  const auto agree = [](const auto& list) {
    return std::all_of(list.begin(), list.end(), [](const auto& one) { return one.agrees(); });
  };
  return agree(ranks) && agree(stages) && agree(counted);
}

const ComparedRank& Validation::worst() const {
  return *std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) {
    return a.measured.live.allocated() < b.measured.live.allocated();
  });
}

ComparedRank compared(const Problem& problem,
                      const Evaluator& evaluator,
                      const RankReport& report) {
  const RankPrediction predicted = predicted_rank(problem, evaluator, report.place.pp);
  return {report.place, predicted.peak, report.peak, compared_calls(predicted, report)};
}

ComparedRank counted_rank(const Problem& problem, std::int64_t stage) {
  return compared(problem, Evaluator(problem),
                  count_rank(problem, {.tp = 0, .dp = 0, .pp = stage}));
}

Validation validated(Shrunk full, Shrunk small, const Runner& run) {
  Validation result{.full = std::move(full), .small = std::move(small)};
  const Problem& p = result.small.problem;
  const Evaluator evaluator(p);
  const RunReport first = run(p, Asked::bytes);
  result.losses = first.losses();
  result.seconds = first.seconds;
  for (const RankReport& rank : first.ranks) {
    result.ranks.push_back(compared(p, evaluator, rank));
  }
  result.time = compared_seconds(p, evaluator, run(p, Asked::seconds));
  for (std::size_t i = 0; i < names<ZeroStage>().size(); ++i) {
    Problem other = p;
    other.layout.zero = static_cast<ZeroStage>(i);
    if (other.layout.zero == p.layout.zero) continue;
    const RunReport again = run(other, Asked::bytes);
    result.stages.push_back({other.layout.zero, again.losses() == result.losses,
                             same_parameters(again, first), reduce_alike(p, other.layout.zero)});
  }
  for (std::int64_t stage = 0; stage < result.full.problem.layout.pp; ++stage) {
    result.counted.push_back(counted_rank(result.full.problem, stage));
  }
  return result;
}

Validation validate_on_host(Shrunk full, const Room& room, const RunOptions& options) {
  Shrunk small = shrunk(full.problem, room);
  return validated(std::move(full), std::move(small), [&](const Problem& p, Asked asked) {
    return run_on_host(p, timed_where(options, asked));
  });
}

}  // namespace zeroplan::engine
