// Will it fit, and how? Front door: fit.
#include "planner/fit.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cost_model/answer/published_mfu.hpp"
#include "planner/candidates.hpp"
#include "planner/nearest.hpp"
#include "planner/recommend.hpp"
#include "planner/sweep/relaxation.hpp"

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
Found nearest_of(const Request& request,
                 const Evaluator& evaluator,
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
    Estimate played = played_estimate(problem, evaluator);
    const auto now = shortcoming(played.verdict, played.device(), played.capacity);
    if (best && now >= of_best) continue;
    best = {candidate.choice, std::move(problem), std::move(played)};
    of_best = now;
  }
  return std::move(*best);
}

// Only existence counts: of the few candidates what needs least is replayed first.
bool some_candidate_fits(const Request& request, const Evaluator& evaluator) {
  std::vector<Candidate> possible;
  for (const LayoutChoice& choice : candidates(request)) {
    const Problem problem = complete(request, choice);
    if (first_violation(problem)) continue;
    const WorstStage floor = floor_of_replay(problem, evaluator, problem.cluster.gpu.memory);
    if (floor.verdict == Verdict::fits) possible.push_back({choice, floor});
  }
  std::stable_sort(possible.begin(), possible.end(), [](const Candidate& a, const Candidate& b) {
    return a.floor.device < b.floor.device;
  });
  return std::any_of(possible.begin(), possible.end(), [&](const Candidate& c) {
    return played_where_it_fits(complete(request, c.choice), evaluator).has_value();
  });
}

// Whether a search finds a layout that fits, where memory is least: one sample at a time, all
// recomputed, activations divided wherever tensor parallelism does.
bool some_lean_layout_fits(SearchSpace space) {
  Request& lean = space.request;
  lean.micro_batch = lean.micro_batch.value_or(1);
  lean.recompute = lean.recompute.value_or(Recompute::full);
  const SearchResult found = some_plan(space, 0);
  if (!found.best.empty()) return true;
  // The allocator may waste less in the smallest of all than was estimated.
  return found.least &&
         played_where_it_fits(problem_of(lean, found.least->layout), Evaluator(question_of(lean)))
             .has_value();
}

// GPUs whose memory holds the states once: no layout spreads them over more than all. None where
// they may be offloaded.
std::int64_t floor_of_states(const Request& request, const Evaluator& evaluator) {
  const Values offloads = choices({.request = request}, Field::offload, open_problem(request));
  if (offloads.size() > 1 || request.offload.value_or(Offload::none) != Offload::none) return 0;
  Problem one = complete(request, {});
  one.layout = {};
  one.layout.zero = ZeroStage::none;
  const Stage whole{.chunks = {{0, request.model.layers}}, .embedding = true, .head = true};
  const Bytes states = model_states(one, evaluator.weights(), whole).total();
  return states.count() / request.cluster.gpu.memory.count();
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

// The first number of GPUs that is enough: below what is known to be, else up to the limit.
template <class FitsOn>
std::optional<std::int64_t> first_enough(const Request& request,
                                         std::int64_t floor,
                                         std::int64_t limit,
                                         std::optional<std::int64_t> known,
                                         const FitsOn& fits_on) {
  const std::int64_t node = request.cluster.gpus_per_node;
  if (known) limit = *known - 1;
  for (std::int64_t gpus = 1; gpus < node; ++gpus) {
    if (node % gpus == 0 && gpus > floor && gpus <= limit && fits_on(gpus)) return gpus;
  }
  const std::int64_t least = std::max<std::int64_t>(1, floor / node);
  // An odd part can only divide over data parallelism, so if some number of nodes will do, then one
  // without it not much above.
  std::int64_t enough = least;
  while (enough * node <= limit && (odd_part(enough, request) > 1 || !fits_on(enough * node))) {
    ++enough;
  }
  const bool found = enough * node <= limit;
  if (!found && !known) return std::nullopt;
  for (std::int64_t nodes = least; nodes < enough; ++nodes) {
    if (odd_part(nodes, request) > 1 && fits_on(nodes * node)) return nodes * node;
  }
  return found ? enough * node : known;
}

// Whether a search looks where no candidate does.
bool reaches_beyond_candidates(const Request& request) {
  return leaves_layout_open(request) || leaves_stage_open(request);
}

}  // namespace

bool some_layout_fits(const Request& request) {
  return some_candidate_fits(request, Evaluator(question_of(request))) ||
         (reaches_beyond_candidates(request) && some_lean_layout_fits({.request = request}));
}

std::optional<std::int64_t> fewest_gpus(const SearchSpace& space, std::int64_t limit) {
  const Request& request = space.request;
  SearchSpace scaled = space;
  const Evaluator evaluator(question_of(request));
  const bool open = reaches_beyond_candidates(request);
  const auto candidate_fits_on = [&](std::int64_t gpus) {
    scaled.request.cluster.gpus = gpus;
    return some_candidate_fits(scaled.request, evaluator);
  };
  const auto layout_fits_on = [&](std::int64_t gpus) {
    scaled.request.cluster.gpus = gpus;
    return some_lean_layout_fits(scaled);
  };
  // Where nothing is divided, more GPUs do not help.
  if (*code_of(request.runtime).divides_states == DividesStates::never) {
    const bool fits = candidate_fits_on(1) || (open && layout_fits_on(1));
    return fits ? std::optional(1) : std::nullopt;
  }
  // Candidates are few: the search has but to look below what is enough for one of them.
  const std::int64_t floor = floor_of_states(request, evaluator);
  const auto enough = first_enough(request, floor, limit, {}, candidate_fits_on);
  if (!open) return enough;
  constexpr std::int64_t most_searched = 512;  // where no candidate fits on any number
  return first_enough(request, floor, std::min(limit, most_searched), enough, layout_fits_on);
}

namespace {

using FoundOrRefused = std::variant<Found, Refusal>;

bool fits(const FoundOrRefused& found) {
  const Found* nearest = std::get_if<Found>(&found);
  return nearest && nearest->estimate.verdict == Verdict::fits;
}

// What the candidates hold: the first that fits, else the nearest to it, or why there is none.
FoundOrRefused found_among_candidates(const Request& request, const Evaluator& evaluator) {
  std::vector<Candidate> others;
  std::optional<std::pair<LayoutChoice, Violation>> refused;
  for (const LayoutChoice& choice : candidates(request)) {
    Problem problem = complete(request, choice);
    if (std::optional<Violation> violation = first_violation(problem)) {
      if (!refused) refused.emplace(choice, std::move(*violation));
      continue;
    }
    WorstStage floor = floor_of_replay(problem, evaluator);
    if (floor.verdict == Verdict::fits) {
      if (auto played = played_where_it_fits(problem, evaluator)) {
        return Found{choice, std::move(problem), std::move(*played)};
      }
      floor.verdict = Verdict::tight;
    }
    others.push_back({choice, floor});
  }
  if (others.empty()) return Refusal{refusal_message(request, refused->first, refused->second)};
  return nearest_of(request, evaluator, std::move(others));
}

LayoutChoice choice_of(const Layout& l) {
  return {l.tp, l.pp, l.cp, l.ep, l.etp, l.zero, l.recompute};
}

// The request with all given that a search chose beside the degrees, but for how layers are split.
Request with_choices_of(const Problem& p, Request r) {
  const Layout& l = p.layout;
  r.vpp = l.vpp;
  r.micro_batch = l.micro_batch;
  r.schedule = l.schedule;
  if (l.tp > 1 && !l.sequence_parallel) r.sequence_parallel = false;
  r.offload = l.offload;
  if (l.hsdp > 0) r.hsdp = l.hsdp;
  const MegatronSettings asked = r.runtime.megatron;
  r.runtime = p.runtime;
  MegatronSettings& set = r.runtime.megatron;
  set.account_for_embedding_in_pipeline_split = asked.account_for_embedding_in_pipeline_split;
  set.account_for_loss_in_pipeline_split = asked.account_for_loss_in_pipeline_split;
  set.decoder_first_pipeline_num_layers = asked.decoder_first_pipeline_num_layers;
  set.decoder_last_pipeline_num_layers = asked.decoder_last_pipeline_num_layers;
  return r;
}

FitAnswer answer_with(const Request& request, Problem problem, Estimate estimate, bool searched) {
  const Evaluator evaluator(question_of(request));
  FitAnswer answer{.problem = std::move(problem), .estimate = std::move(estimate)};
  if (answer.estimate.phases.empty()) play_resumed(answer.problem, evaluator, answer.estimate);
  answer.step = step_time(answer.problem, evaluator);
  answer.placement = better_placement(answer.problem, answer.step);
  answer.chosen = chosen_fields(request, answer.problem);
  answer.assumptions = searched ? assumptions_beside_choice(request, answer.problem)
                                : assumptions(request, answer.problem);
  if (auto fastest = faster_than_published(answer.problem, answer.step.seconds)) {
    answer.assumptions.push_back(std::move(*fastest));
  }
  if (!layout_given(request)) answer.fewest_gpus = fewest_gpus({.request = request}, most_gpus);
  if (answer.fewest_gpus && answer.estimate.verdict == Verdict::fits) {
    answer.fewest_gpus = std::min(*answer.fewest_gpus, request.cluster.gpus);
  }
  if (answer.estimate.verdict != Verdict::fits && !request.runtime.recorded) {
    answer.nearest_fits = nearest_fits(with_choices_of(answer.problem, request),
                                       choice_of(answer.problem.layout), answer.problem);
  }
  return answer;
}

std::variant<FitAnswer, Refusal> answer_of(const Request& request, FoundOrRefused found) {
  if (Refusal* refusal = std::get_if<Refusal>(&found)) return std::move(*refusal);
  Found& nearest = std::get<Found>(found);
  return answer_with(request, std::move(nearest.problem), std::move(nearest.estimate), false);
}

}  // namespace

std::variant<FitAnswer, Refusal> fit(const Request& request, double tie) {
  const SearchSpace space{.request = request};
  if (!leaves_layout_open(request)) {
    auto found = found_among_candidates(request, Evaluator(question_of(request)));
    if (!leaves_stage_open(request) || fits(found)) return answer_of(request, std::move(found));
  }
  std::optional<Recommendation> best = recommend(space, tie);
  if (!best) return nearest_to_fitting(space);
  FitAnswer answer = answer_with(request, problem_of(request, best->plan.plan.layout),
                                 std::move(best->plan.played), true);
  Problem fastest = problem_of(request, best->fastest.plan.layout);
  StepTime step = step_time(fastest, Evaluator(question_of(request)));
  answer.fastest = {std::move(fastest), std::move(step)};
  return answer;
}

std::variant<FitAnswer, Refusal> nearest_to_fitting(const SearchSpace& space) {
  const Request& request = space.request;
  const bool open = reaches_beyond_candidates(request);
  auto found = found_among_candidates(request, Evaluator(question_of(request)));
  std::optional<PlayedPlan> least = open && !fits(found) ? least_memory(space) : std::nullopt;
  const Found* nearest = std::get_if<Found>(&found);
  if (least && (!nearest || least->played.device() < nearest->estimate.device())) {
    return answer_with(request, problem_of(request, least->plan.layout), std::move(least->played),
                       true);
  }
  return answer_of(request, std::move(found));
}

}  // namespace zeroplan
