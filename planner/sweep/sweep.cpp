// Which layout should I use? Front door: sweep.
#include "planner/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "cost_model/answer/published_mfu.hpp"
#include "cost_model/network/fabric.hpp"
#include "planner/sweep/enumeration.hpp"
#include "planner/sweep/relaxation.hpp"
#include "planner/sweep/thread_team.hpp"

namespace zeroplan {
namespace {

SearchSpace space_on(const SweepQuestion& q, std::int64_t gpus) {
  SearchSpace space{.request = q.request,
                    .tensor_reach = q.tensor_reach,
                    .spares_buffers = q.objective == Objective::headroom};
  set_gpu_count(space.request.cluster, gpus);
  Bytes& memory = space.request.cluster.gpu.memory;
  if (q.max_memory) memory = std::min(memory, *q.max_memory);
  return space;
}

std::vector<std::int64_t> halved_counts(std::int64_t gpus) {
  std::vector<std::int64_t> counts{gpus};
  while (counts.back() % 2 == 0) counts.push_back(counts.back() / 2);
  return counts;
}

SearchResult search_counts(const SweepQuestion& q,
                           const std::vector<std::int64_t>& counts,
                           const Watch& watch) {
  std::vector<SearchSpace> spaces;
  for (const std::int64_t gpus : counts) spaces.push_back(space_on(q, gpus));
  const bool step = q.objective == Objective::step;
  // On one number of GPUs the fewest are those of the fastest, and on most numbers nothing fits.
  const bool gpus = q.objective == Objective::gpus;
  return search(spaces,
                {.objective = gpus ? Objective::step : q.objective,
                 .shapes = q.top,
                 .kin = step && !q.all ? Kin::family : Kin::shape,
                 .front = q.front,
                 .exhaustive = q.exhaustive,
                 .may_be_none = gpus,
                 .tie = step ? std::optional(q.tie) : std::nullopt,
                 .threads = q.threads},
                watch);
}

// What the answer takes for granted: not what the search chose.
std::vector<std::string> assumed(const SweepQuestion& q, const Request& request, const Problem& p) {
  std::vector<std::string> list = assumptions_beside_choice(request, p);
  if (q.max_memory) {
    list.push_back(
        fmt::format("a GPU may use {:.2f} GiB (--max-memory)", gibibytes(p.cluster.gpu.memory)));
  }
  return list;
}

Plan plan_of(const SweepQuestion& q, const Scored& scored, const Estimate& played) {
  const Request request = space_on(q, scored.gpus).request;
  const Problem p = problem_of(q, scored);
  const Evaluator evaluator(question_of(request));
  Plan plan{.answer = {.problem = p,
                       .estimate = played,
                       .step = step_time(p, evaluator),
                       .chosen = chosen_fields(request, p),
                       .assumptions = assumed(q, request, p)},
            .scored = scored,
            .simplicity = SimplicityOf(request)(p),
            .faster_split = faster_split(p, evaluator)};
  if (auto fastest = faster_than_published(p, plan.answer.step.seconds)) {
    plan.answer.assumptions.push_back(std::move(*fastest));
  }
  play_resumed(p, evaluator, plan.answer.estimate);
  plan.scored.device = plan.answer.estimate.device();
  return plan;
}

// Each once: the fastest, the recommended, then one of each family, or shape, while there is room.
std::vector<PlayedPlan> listed_plans(const SearchResult& found, std::size_t top) {
  std::vector<PlayedPlan> listed;
  const auto add = [&](const Scored& plan, const Estimate& played) {
    const bool known = std::any_of(listed.begin(), listed.end(), [&](const PlayedPlan& other) {
      return same_plan(other.plan, plan);
    });
    if (!known) listed.push_back({plan, played});
  };
  if (!found.best.empty()) add(found.best.front(), found.played.front());
  if (found.simplest) add(found.simplest->plan, found.simplest->played);
  for (std::size_t i = 0; i < found.best.size() && listed.size() < top; ++i) {
    if (i < found.simplest_of_each.size()) {
      add(found.simplest_of_each[i].plan, found.simplest_of_each[i].played);
    } else {
      add(found.best[i], found.played[i]);
    }
  }
  return listed;
}

void add_plans(const SweepQuestion& q, SweepAnswer& answer) {
  std::vector<PlayedPlan> listed = listed_plans(answer.search, q.top);
  // Those with most passes take longest: begun last, they would be waited for.
  std::ranges::stable_sort(listed, std::greater{}, [](const PlayedPlan& plan) {
    const Layout& l = plan.plan.layout;
    return static_cast<double>(l.pp * l.vpp) / static_cast<double>(l.dp * l.micro_batch);
  });
  answer.plans.resize(listed.size());
  ThreadTeam team(std::min(answer.threads, all_cores()));
  const auto dealt_out = [](std::size_t i) { return i; };
  team.each(
      0, listed.size(),
      [&](std::size_t, std::size_t i) {
        answer.plans[i] = plan_of(q, listed[i].plan, listed[i].played);
      },
      dealt_out);
  std::stable_sort(answer.plans.begin(), answer.plans.end(), [&](const Plan& a, const Plan& b) {
    return better(q.objective, a.scored, b.scored);
  });
  if (!answer.search.simplest) return;
  const auto recommended = std::find_if(
      answer.plans.begin(), answer.plans.end(),
      [&](const Plan& plan) { return same_plan(plan.scored, answer.search.simplest->plan); });
  answer.recommended = static_cast<std::size_t>(recommended - answer.plans.begin());
}

// Where no estimate fits with its whole band: what the allocator's replay still lets pass, or what
// is tight.
void add_what_fit_finds(const SearchSpace& space, SweepAnswer& answer) {
  const Request& request = space.request;
  const auto found = nearest_to_fitting(space);
  const FitAnswer* fits = std::get_if<FitAnswer>(&found);
  if (!fits) {
    answer.refusal = std::get<Refusal>(found);
    return;
  }
  if (fits->estimate.verdict == Verdict::does_not_fit) {
    answer.nearest_fits = fits->nearest_fits;
    return;
  }
  const Problem& p = fits->problem;
  const double tokens = static_cast<double>(p.training.global_batch * p.training.sequence_length);
  const Scored scored{.layout = p.layout,
                      .gpus = p.cluster.gpus,
                      .seconds = fits->step.seconds,
                      .seconds_per_token = fits->step.seconds / tokens,
                      .device = fits->estimate.device()};
  answer.plans.push_back({.answer = *fits,
                          .scored = scored,
                          .simplicity = SimplicityOf(request)(p),
                          .faster_split = {}});
}

// Marks what nothing else among the plans beats, and what time cannot tell from the best.
void compare(double tie, SweepAnswer& answer) {
  ParetoFront front;
  for (const Plan& plan : answer.plans) front.add(plan.scored);
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    const Scored& plan = answer.plans[i].scored;
    for (const Scored& member : front.plans()) {
      if (same_plan(member, plan)) answer.pareto.push_back(i);
    }
    const double fastest = answer.plans.front().scored.seconds_per_token;
    answer.plans[i].equal = plan.seconds_per_token <= (1 + tie) * fastest;
  }
}

// What would have to change for there to be a plan.
void explain(const SweepQuestion& q, SweepAnswer& answer, const Watch& watch) {
  const SearchSpace space = space_on(q, q.request.cluster.gpus);
  answer.releases = fields_to_release(space, q.threads, watch);
  answer.fewest_gpus = fewest_gpus(space, most_gpus);
}

}  // namespace

Problem problem_of(const SweepQuestion& q, const Scored& scored) {
  return problem_of(space_on(q, scored.gpus).request, scored.layout);
}

SweepAnswer sweep(const SweepQuestion& q, const Watch& watch) {
  SweepAnswer answer;
  answer.threads = q.threads > 0 ? q.threads : all_cores();
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t all = q.request.cluster.gpus;
  if (q.objective == Objective::gpus) {
    answer.gpu_counts = {fewest_gpus(space_on(q, all), all).value_or(all)};
  } else if (q.objective == Objective::cost) {
    answer.gpu_counts = halved_counts(all);
  } else {
    answer.gpu_counts = {all};
  }
  answer.search = search_counts(q, answer.gpu_counts, watch);
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  add_plans(q, answer);
  if (answer.plans.empty() && !answer.search.stopped) {
    add_what_fit_finds(space_on(q, answer.gpu_counts.front()), answer);
  }
  if (!answer.plans.empty()) {
    compare(q.tie, answer);
  } else if (!answer.search.stopped && !answer.refusal) {
    explain(q, answer, watch);
  }
  return answer;
}

}  // namespace zeroplan
