// Will it fit, and how? Front door: fit.
#include "planner/fit.hpp"

#include <algorithm>
#include <numeric>

#include "planner/candidates.hpp"
#include "planner/nearest.hpp"

namespace zeroplan {
namespace {

struct Found {
  LayoutChoice choice;
  Problem problem;
  Estimate estimate;
};

bool better(const Estimate& a, const Estimate& b) {
  if (a.verdict != b.verdict) return a.verdict < b.verdict;
  return a.verdict == Verdict::does_not_fit && a.device() < b.device();
}

// True when the first stage alone shows that the layout neither is tight nor needs less than
// `best`.
bool hopeless(const Problem& problem,
              const Remembered& remembered,
              const std::optional<Found>& best) {
  if (!best) return false;
  const Bytes bar = std::max(best->estimate.device(), problem.cluster.gpu.memory);
  const Bytes first = first_stage_bytes(problem, remembered);
  // The widest band reaches 30 % below the prediction: what lies within may still be tight.
  return first.count() / 100 * 70 > bar.count();
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
  // Only existence counts, and full recompute needs least.
  if (!scaled.recompute) scaled.recompute = Recompute::full;
  const Remembered remembered(request.model);
  const std::int64_t node = request.cluster.gpus_per_node;
  const auto fits_on = [&](std::int64_t gpus) {
    scaled.cluster.gpus = gpus;
    std::vector<LayoutChoice> points = candidates(scaled);
    return std::any_of(points.begin(), points.end(), [&](const LayoutChoice& point) {
      const Problem problem = complete(scaled, point);
      if (first_violation(problem)) return false;
      const Bytes capacity = problem.cluster.gpu.memory;
      if (first_stage_bytes(problem, remembered) > capacity) return false;
      return confirmed_estimate(problem, remembered).verdict == Verdict::fits;
    });
  };
  // No layout spreads the states over more than all GPUs.
  Problem one = complete(scaled, {});
  one.layout = {};
  one.layout.zero = ZeroStage::none;
  const Stage whole{.chunks = {{0, request.model.layers}}, .embedding = true, .head = true};
  const Bytes states = model_states(one, remembered.weights(), whole).total();
  const std::int64_t floor = states.count() / request.cluster.gpu.memory.count();
  // DDP divides nothing: more GPUs do not help.
  if (request.runtime.kind == Runtime::ddp) return fits_on(1) ? std::optional(1) : std::nullopt;
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
  std::optional<Found> best;
  std::optional<std::pair<LayoutChoice, Violation>> refused;
  for (const LayoutChoice& choice : candidates(request)) {
    Problem problem = complete(request, choice);
    if (std::optional<Violation> violation = first_violation(problem)) {
      if (!refused) refused.emplace(choice, std::move(*violation));
      continue;
    }
    if (hopeless(problem, remembered, best)) continue;
    Estimate result = confirmed_estimate(problem, remembered);
    if (!best || better(result, best->estimate))
      best = {choice, std::move(problem), std::move(result)};
    if (best->estimate.verdict == Verdict::fits) break;
  }
  if (!best) return Refusal{refusal_message(request, refused->first, refused->second)};

  FitAnswer answer{.problem = best->problem,
                   .estimate = played_estimate(best->problem, remembered),
                   .step = step_time(best->problem, remembered),
                   .chosen = chosen_fields(request, best->problem),
                   .assumptions = assumptions(request, best->problem)};
  if (!layout_given(request)) answer.fewest_gpus = fewest_gpus(request, most_gpus);
  if (answer.estimate.verdict == Verdict::does_not_fit) {
    answer.nearest_fits = nearest_fits(request, best->choice, best->problem, remembered);
  }
  return answer;
}

}  // namespace zeroplan
