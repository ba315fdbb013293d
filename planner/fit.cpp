// Will it fit, and how? Front door: fit.
#include "planner/fit.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/candidates.hpp"
#include "planner/nearest.hpp"

namespace zeroplan {
namespace {

// A legal layout that was not replayed yet.
struct Candidate {
  LayoutChoice choice;
  WorstStage floor;
};

struct Found {
  LayoutChoice choice;
  Problem problem;
  Estimate estimate;
};

// What is bad about an answer, less being better: that it fits not with its whole band, or not at
// all, or cannot; of the last two what needs more.
std::pair<int, Bytes> shortcoming(Verdict verdict, Bytes device, Bytes capacity) {
  if (verdict == Verdict::fits) return {0, {}};
  if (device <= capacity) return {1, {}};
  return {verdict == Verdict::tight ? 2 : 3, device};
}

// The best of layouts none of which fits with its whole band. What cannot be better than the best
// so far is not replayed.
Found nearest_to_fitting(const Request& request,
                         const Remembered& remembered,
                         std::vector<Candidate> candidates) {
  const auto least = [&](const Candidate& c) {
    return shortcoming(c.floor.verdict, c.floor.device, request.cluster.gpu.memory);
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return least(a) < least(b); });
  std::optional<Found> best;
  std::pair<int, Bytes> of_best;
  for (const Candidate& candidate : candidates) {
    if (best && least(candidate) >= of_best) continue;
    Problem problem = complete(request, candidate.choice);
    Estimate played = played_estimate(problem, remembered);
    const auto now = shortcoming(played.verdict, played.device(), played.capacity);
    if (best && now >= of_best) continue;
    best = {candidate.choice, std::move(problem), std::move(played)};
    of_best = now;
  }
  return std::move(*best);
}

// Only existence counts: what needs least is replayed first.
bool some_layout_fits(const Request& request, const Remembered& remembered) {
  std::vector<Candidate> possible;
  for (const LayoutChoice& choice : candidates(request)) {
    const Problem problem = complete(request, choice);
    if (first_violation(problem)) continue;
    const WorstStage floor = floor_of_replay(problem, remembered, problem.cluster.gpu.memory);
    if (floor.verdict == Verdict::fits) possible.push_back({choice, floor});
  }
  std::stable_sort(possible.begin(), possible.end(), [](const Candidate& a, const Candidate& b) {
    return a.floor.device < b.floor.device;
  });
  return std::any_of(possible.begin(), possible.end(), [&](const Candidate& c) {
    return played_where_it_fits(complete(request, c.choice), remembered).has_value();
  });
}

// What is left of a number of nodes without the primes that degrees are made of: small ones, those
// of the layers and of what was given.
std::int64_t odd_part(std::int64_t nodes, const Request& r) {
  constexpr std::int64_t small = 2 * 3 * 5 * 7;
  const std::int64_t given = r.tp.value_or(1) * r.pp.value_or(1);
  for (const std::int64_t of : {small, r.model.layers, r.model.layers + 1, r.model.layers + 2,
                                given, r.cp.value_or(1), r.ep.value_or(1)}) {
    for (std::int64_t common = std::gcd(nodes, of); common > 1; common = std::gcd(nodes, of)) {
      nodes /= common;
    }
  }
  return nodes;
}

bool layout_given(const Request& r) {
  return r.tp || r.pp || r.vpp || r.cp || r.ep || r.etp || r.hsdp || r.zero || r.recompute ||
         r.schedule;
}

}  // namespace

std::optional<std::int64_t> fewest_gpus(const Request& request, std::int64_t limit) {
  Request scaled = request;
  const Remembered remembered(request.model);
  const std::int64_t node = request.cluster.gpus_per_node;
  const auto fits_on = [&](std::int64_t gpus) {
    scaled.cluster.gpus = gpus;
    return some_layout_fits(scaled, remembered);
  };
  // No layout spreads the states over more than all GPUs.
  Problem one = complete(scaled, {});
  one.layout = {};
  one.layout.zero = ZeroStage::none;
  const Stage whole{.chunks = {{0, request.model.layers}}, .embedding = true, .head = true};
  const Bytes states = model_states(one, remembered.weights(), whole).total();
  const std::int64_t floor = states.count() / request.cluster.gpu.memory.count();
  // Where nothing is divided, more GPUs do not help.
  if (*code_of(request.runtime).sharding == Sharding::never)
    return fits_on(1) ? std::optional(1) : std::nullopt;
  for (std::int64_t gpus = 1; gpus < node; ++gpus) {
    if (node % gpus == 0 && gpus > floor && fits_on(gpus)) return gpus;
  }
  const std::int64_t least = std::max<std::int64_t>(1, floor / node);
  // An odd part can only divide over data parallelism, so if some number of nodes will do, then one
  // without it not much above.
  std::int64_t enough = least;
  while (enough * node <= limit && (odd_part(enough, request) > 1 || !fits_on(enough * node))) {
    ++enough;
  }
  if (enough * node > limit) return std::nullopt;
  for (std::int64_t nodes = least; nodes < enough; ++nodes) {
    if (odd_part(nodes, request) > 1 && fits_on(nodes * node)) return nodes * node;
  }
  return enough * node;
}

std::variant<FitAnswer, Refusal> fit(const Request& request) {
  const Remembered remembered(request.model);
  std::optional<Found> found;
  std::vector<Candidate> others;
  std::optional<std::pair<LayoutChoice, Violation>> refused;
  for (const LayoutChoice& choice : candidates(request)) {
    Problem problem = complete(request, choice);
    if (std::optional<Violation> violation = first_violation(problem)) {
      if (!refused) refused.emplace(choice, std::move(*violation));
      continue;
    }
    WorstStage floor = floor_of_replay(problem, remembered);
    if (floor.verdict == Verdict::fits) {
      if (auto played = played_where_it_fits(problem, remembered)) {
        found = {choice, std::move(problem), std::move(*played)};
        break;
      }
      floor.verdict = Verdict::tight;
    }
    others.push_back({choice, floor});
  }
  if (!found) {
    if (others.empty()) {
      return Refusal{refusal_message(request, refused->first, refused->second)};
    }
    found = nearest_to_fitting(request, remembered, std::move(others));
  }

  FitAnswer answer{.problem = found->problem,
                   .estimate = std::move(found->estimate),
                   .step = step_time(found->problem, remembered),
                   .chosen = chosen_fields(request, found->problem),
                   .assumptions = assumptions(request, found->problem)};
  if (!layout_given(request)) answer.fewest_gpus = fewest_gpus(request, most_gpus);
  if (answer.estimate.verdict == Verdict::does_not_fit) {
    answer.nearest_fits = nearest_fits(request, found->choice, found->problem, remembered);
  }
  return answer;
}

}  // namespace zeroplan
