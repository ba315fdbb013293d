// Which layouts of a space are best? Front door: search.
#include "planner/sweep/search.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <numeric>
#include <tuple>

#include "planner/sweep/best_first.hpp"

namespace zeroplan {
namespace {

// As asked, but not more than there are cores: answers do not depend on it.
std::size_t threads_of(const SearchSettings& settings) {
  return settings.threads > 0 ? std::min(settings.threads, all_cores()) : all_cores();
}

class Search {
 public:
  Search(const std::vector<SearchSpace>& spaces, const SearchSettings& settings)
      : spaces_(spaces), settings_(settings), crew_(spaces, threads_of(settings)) {}

  SearchResult run(const Watch& watch) {
    for (std::size_t i = 0; i < spaces_.size() && !result_.stopped; ++i) collect(i, watch);
    find_best(watch);
    if (settings_.tie && !result_.best.empty() && !result_.stopped) find_simplest(watch);
    return std::move(result_);
  }

 private:
  // Shapes of one space with their floors, which are made in parallel, each in its own place.
  void collect(std::size_t space, const Watch& watch) {
    Enumeration enumeration(spaces_[space]);
    const std::int64_t gpus = spaces_[space].request.cluster.gpus;
    const std::size_t first = shapes_.size();
    enumeration.all(shape_depth, [&](const Problem& p) {
      shapes_.emplace_back(p.layout, space, gpus, enumeration.size());
    });
    result_.points += enumeration.size();
    for (const auto& [rule, count] : enumeration.rejected()) result_.rejected[rule] += count;
    if (settings_.exhaustive) return;
    const bool memory =
        settings_.front || settings_.objective == Objective::headroom || settings_.may_be_none;
    const std::vector<std::size_t> order = alike_together(first, memory);
    const auto make_bound = [&](ShapeSearch& worker, std::size_t i) {
      Shape& shape = shapes_[order[i]];
      shape.bound = worker.bound(space, shape.layout(), memory);
    };
    const auto home = [&](std::size_t i) { return shapes_[order[i]].home(); };
    constexpr std::size_t block = 1024;  // between looks at the watch
    for (std::size_t next = 0; next < order.size() && !result_.stopped; next += block) {
      crew_.in_parallel(next, std::min(next + block, order.size()), make_bound, home);
      if (watch) result_.stopped = !watch({});
    }
  }

  // The shapes from `first` on, those after each other whose blocks are alike, or where memory is
  // weighed whose model states are divided alike.
  std::vector<std::size_t> alike_together(std::size_t first, bool weighs_memory) const {
    std::vector<std::size_t> order(shapes_.size() - first);
    std::iota(order.begin(), order.end(), first);
    const auto shared = [&](std::size_t i) {
      const auto& [micro_batch, tp, cp, pp, ep, etp, vpp] = shapes_[i].degrees;
      return weighs_memory ? std::tuple(tp, cp, ep, etp, pp)
                           : std::tuple(tp, cp, micro_batch, ep, etp);
    };
    std::ranges::stable_sort(order, {}, shared);
    return order;
  }

  void find_best(const Watch& watch) {
    BestFirst found(crew_, all_shapes(),
                    {.objective = settings_.objective,
                     .plans = settings_.shapes,
                     .kin = settings_.kin,
                     .capacity = capacity(),
                     .may_be_none = settings_.may_be_none,
                     .most_fitting = most_fitting(),
                     .front = settings_.front,
                     .exhaustive = settings_.exhaustive});
    if (result_.stopped) {
      found.stop();
    } else {
      found.run(watch);
    }
    result_.stopped = found.stopped();
    result_.least = found.least();
    found.each_shape([&](const Shape& shape, const ShapeCounts* outcome, std::string_view why_not,
                         std::optional<double> untimed_from) {
      const Layout layout = shape.layout();
      GridCell& cell = result_.grid[{layout.tp, layout.pp}];
      if (untimed_from) {
        cell.untimed_from = std::min(cell.untimed_from.value_or(*untimed_from), *untimed_from);
      }
      result_.refused_when_played += static_cast<std::int64_t>(shape.refused().size());
      if (outcome) {
        add(*outcome, cell);
      } else {
        result_.rejected[why_not] += shape.points;
        if (why_not == bound_too_large) lower_least_bound(shape.bound.device);
      }
    });
    result_.evaluated_again = found.evaluations() - result_.evaluated;
    for (const Scored& plan : found.plans()) {
      result_.best.push_back(plan);
      result_.played.push_back(*crew_.played(plan)->estimate);
    }
    if (settings_.front || settings_.exhaustive) result_.front = found.front().plans();
    if (result_.best.empty() && result_.refused_when_played > 0) {  // not asked for to the end
      result_.least.reset();
      result_.least_bound.reset();
    }
  }

  std::vector<Shape*> all_shapes() {
    std::vector<Shape*> shapes;
    shapes.reserve(shapes_.size());
    for (Shape& shape : shapes_) shapes.push_back(&shape);
    return shapes;
  }

  Bytes capacity() const { return spaces_.front().request.cluster.gpu.memory; }
  Bytes most_fitting() const { return most_that_fits(spaces_.front().request.runtime, capacity()); }

  void lower_least_bound(Bytes bound) {
    result_.least_bound = std::min(result_.least_bound.value_or(bound), bound);
  }

  void add(const ShapeCounts& outcome, GridCell& cell) {
    result_.evaluated += outcome.evaluated;
    result_.feasible += outcome.feasible;
    for (const auto& [why, count] : outcome.rejected) result_.rejected[why] += count;
    if (outcome.least_bound) lower_least_bound(*outcome.least_bound);
    const bool is_timed = outcome.fastest < no_threshold;
    if (is_timed && (cell.seconds_per_token == 0 || outcome.fastest < cell.seconds_per_token)) {
      cell.seconds_per_token = outcome.fastest;
    }
  }

  // Searches once more, with bounds: how slow a plan may be, and that none is less simple than
  // what was found.
  void find_simplest(const Watch& watch) {
    const auto slower = [&](double seconds) { return (1 + *settings_.tie) * seconds; };
    const double of_all = slower(result_.best.front().seconds_per_token);
    if (settings_.kin == Kin::family) {
      // No shape is of two families, so each is searched by a thread of its own.
      std::vector<std::optional<Simplest>> found(result_.best.size());
      std::mutex watching;
      bool stopped = false;
      const Watch watch_together = [&](const Progress& progress) {
        const std::scoped_lock lock(watching);
        stopped = stopped || (watch && !watch(progress));
        return !stopped;
      };
      crew_.in_parallel(0, found.size(), [&](ShapeSearch& worker, std::size_t i) {
        const Scored& best = result_.best[i];
        const double own = best.seconds_per_token;
        const double slowest = own <= of_all ? of_all : slower(own);
        Crew alone(crew_, worker);
        const auto is_of_family = [&](const Scored& shape) { return same_family(shape, best); };
        found[i] =
            simplest_below(alone, slowest, best_found(worker, i), is_of_family, watch_together);
      });
      for (std::optional<Simplest>& of_family : found) {
        result_.simplest_of_each.push_back(take(std::move(*of_family)));
      }
    }
    find_simplest_of_all(of_all, watch);
  }

  // The simplest of each family are known by now, so that only other shapes are left.
  void find_simplest_of_all(double slowest, const Watch& watch) {
    PlayedPlan simplest = best_found(crew_.worker(), 0);
    for (const PlayedPlan& of_family : result_.simplest_of_each) {
      if (of_family.plan.seconds_per_token <= slowest &&
          better(Objective::simplicity, of_family.plan, simplest.plan)) {
        simplest = of_family;
      }
    }
    const auto is_new = [&](const Scored& shape) {
      return std::ranges::none_of(result_.simplest_of_each, [&](const PlayedPlan& known) {
        return same_family(shape, known.plan);
      });
    };
    if (!result_.stopped) {
      simplest = take(simplest_below(crew_, slowest, std::move(simplest), is_new, watch));
    }
    result_.simplest = std::move(simplest);
  }

  struct Simplest {
    PlayedPlan plan;
    std::int64_t evaluations = 0;
    bool stopped = false;
  };

  PlayedPlan take(Simplest found) {
    result_.evaluated_again += found.evaluations;
    result_.stopped |= found.stopped;
    return std::move(found.plan);
  }

  PlayedPlan best_found(const ShapeSearch& worker, std::size_t i) const {
    Scored plan = result_.best[i];
    plan.complexity = worker.complexity(space_of(plan), plan);
    return {plan, result_.played[i]};
  }

  // The simplest plan of shapes that `takes` with so many seconds a token at most: the reference,
  // or a simpler one.
  template <class Takes>
  Simplest simplest_below(
      Crew& crew, double slowest, PlayedPlan reference, Takes&& takes, const Watch& watch) {
    std::vector<Shape*> shapes;
    for (Shape& shape : shapes_) {
      if (shape.bound.seconds_per_token > slowest) continue;
      if (takes(Scored{.layout = shape.layout(), .gpus = shape.gpus})) shapes.push_back(&shape);
    }
    BestFirst found(crew, shapes,
                    {.objective = Objective::simplicity,
                     .slowest = slowest,
                     .most = objective_value(Objective::simplicity, reference.plan),
                     .capacity = capacity(),
                     .most_fitting = most_fitting()});
    found.run(watch);
    if (!found.plans().empty() &&
        better(Objective::simplicity, found.plans().front(), reference.plan)) {
      const Scored& plan = found.plans().front();
      reference = {plan, *crew.played(plan)->estimate};
    }
    return {std::move(reference), found.evaluations(), found.stopped()};
  }

  std::size_t space_of(const Scored& plan) const {
    std::size_t i = 0;
    while (i + 1 < spaces_.size() && spaces_[i].request.cluster.gpus != plan.gpus) ++i;
    return i;
  }

  const std::vector<SearchSpace>& spaces_;
  const SearchSettings settings_;
  Crew crew_;
  std::deque<Shape> shapes_;
  SearchResult result_;
};

}  // namespace

SearchResult search(const std::vector<SearchSpace>& spaces,
                    const SearchSettings& settings,
                    const Watch& watch) {
  return Search(spaces, settings).run(watch);
}

}  // namespace zeroplan
