// Which layouts of a space are best? Front door: search.
#include "planner/sweep/search.hpp"

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <memory>

namespace zeroplan {
namespace {

struct Shape {
  Layout layout;
  std::size_t space = 0;
  std::int64_t points = 0;
  ShapeFloor floor;
  double objective_floor = 0;
  std::vector<Scored> refused = {};  // plans that do not fit when played
};

// More shapes than asked for, since the allocator's replay may refuse some.
constexpr std::size_t spare_shapes(std::size_t asked) {
  return std::min<std::size_t>(8, 2 * asked);
}

// Plans that are replayed together where fewer are asked for.
constexpr std::size_t fewest_together = 2;

// The best plan of a shape that was opened, and what replaying the allocator says where it fits.
struct Found {
  Shape* shape = nullptr;
  std::optional<Scored> plan;
  std::shared_ptr<const Estimate> played;
};

class Search {
 public:
  Search(const std::vector<SearchSpace>& spaces, const SearchSettings& settings)
      : spaces_(spaces),
        settings_(settings),
        threads_(settings.threads > 0 ? settings.threads : all_cores()),
        allowed_(oneapi::tbb::global_control::max_allowed_parallelism, threads_),
        arena_(static_cast<int>(threads_)),
        openers_([&] { return std::make_unique<Opener>(spaces); }),
        best_(settings.objective, settings.shapes, settings.kin) {}

  SearchResult run(const Watch& watch) {
    for (std::size_t i = 0; i < spaces_.size() && !result_.stopped; ++i) collect(i, watch);
    queue_shapes();
    const SearchResult collected = result_;
    for (std::size_t kept = settings_.shapes + spare_shapes(settings_.shapes);; kept *= 2) {
      open_all(kept, watch);
      const bool all = best_.threshold() == no_threshold;  // of what fits was found
      confirm();
      if (all || result_.stopped || result_.best.size() == settings_.shapes) break;
      result_ = collected;  // what was cut may be among the best
    }
    for (const Shape& shape : shapes_) {
      result_.refused_when_played += static_cast<std::int64_t>(shape.refused.size());
    }
    if (result_.best.empty() && result_.refused_when_played > 0) {  // not asked for to the end
      result_.least.reset();
      result_.least_floor.reset();
    }
    if (settings_.front || settings_.exhaustive) result_.front = front_.plans();
    if (settings_.tie && !result_.best.empty() && !result_.stopped) find_simplest(watch);
    return std::move(result_);
  }

 private:
  // Searches once more, with bounds: how slow a plan may be, and that none is less simple than
  // what was found.
  void find_simplest(const Watch& watch) {
    SearchResult found = std::move(result_);
    const bool each = settings_.kin == Kin::family;
    settings_.objective = Objective::simplicity;
    settings_.shapes = 1;
    settings_.kin = Kin::shape;
    settings_.front = settings_.exhaustive = false;
    for (Shape& shape : shapes_) shape.objective_floor = floor_value(shape);
    const auto slower = [&](double seconds) { return (1 + *settings_.tie) * seconds; };
    const PlayedPlan fastest{found.best.front(), found.played.front()};
    const double of_all = slower(fastest.plan.seconds_per_token);
    found.simplest = simplest_below(of_all, fastest, false, watch);
    for (std::size_t i = 0; each && i < found.best.size() && !result_.stopped; ++i) {
      const PlayedPlan best{found.best[i], found.played[i]};
      const double own = best.plan.seconds_per_token;
      const double slowest = own <= of_all ? of_all : slower(own);
      found.simplest_of_each.push_back(simplest_below(slowest, best, true, watch));
    }
    found.stopped = result_.stopped;
    result_ = std::move(found);
  }

  // The simplest plan, of the family or of all, with so many seconds a token at most: one like the
  // reference, or simpler.
  PlayedPlan simplest_below(double slowest,
                            PlayedPlan reference,
                            bool of_family,
                            const Watch& watch) {
    slowest_ = slowest;
    reference.plan.complexity =
        openers_.local()->complexity(space_of(reference.plan), reference.plan);
    most_ = value_of(reference.plan);
    queue_.clear();
    queue_shapes();
    std::erase_if(queue_, [&](const Shape* shape) {
      const Scored scored{.layout = shape->layout,
                          .gpus = spaces_[shape->space].request.cluster.gpus};
      return shape->floor.seconds_per_token > slowest_ ||
             (of_family && !same_family(scored, reference.plan));
    });
    for (std::size_t kept = 1 + spare_shapes(1);; kept *= 2) {
      result_ = {};
      open_all(kept, watch);
      const bool all = best_.threshold() == no_threshold;
      confirm();
      if (all || result_.stopped || !result_.best.empty()) break;
    }
    if (result_.best.empty()) return reference;
    return {result_.best.front(), std::move(result_.played.front())};
  }

  std::size_t space_of(const Scored& plan) const {
    std::size_t i = 0;
    while (i + 1 < spaces_.size() && spaces_[i].request.cluster.gpus != plan.gpus) ++i;
    return i;
  }

  double floor_value(const Shape& shape) const {
    return objective_value(settings_.objective, spaces_[shape.space].request.cluster.gpus,
                           shape.floor.seconds_per_token, shape.floor.device,
                           shape.floor.complexity);
  }

  void open_all(std::size_t kept, const Watch& watch) {
    best_ = BestShapes(settings_.objective, kept, settings_.kin);
    found_.clear();
    width_ = 1;
    std::size_t next = 0;
    while (next < queue_.size() && !result_.stopped) {
      open(next_wave(next));
      if (watch) result_.stopped = !watch(progress(next));
    }
    for (; next < queue_.size(); ++next) cut(*queue_[next], not_looked_at);
  }

  // Shapes of one space with their floors, which are made in parallel, each in its own place.
  void collect(std::size_t space, const Watch& watch) {
    Enumeration enumeration(spaces_[space]);
    const std::size_t first = shapes_.size();
    enumeration.all(shape_depth, [&](const Problem& p) {
      shapes_.push_back({.layout = p.layout, .space = space, .points = enumeration.size()});
    });
    result_.points += enumeration.size();
    for (const auto& [rule, count] : enumeration.rejected()) result_.rejected[rule] += count;
    if (settings_.exhaustive) return;
    const bool memory = settings_.front || settings_.objective == Objective::headroom;
    const auto make_floor = [&](Opener& opener, std::size_t i) {
      Shape& shape = shapes_[i];
      shape.floor = opener.floor(space, shape.layout, memory);
      shape.objective_floor = floor_value(shape);
    };
    constexpr std::size_t block = 1024;  // between looks at the watch
    for (std::size_t next = first; next < shapes_.size() && !result_.stopped; next += block) {
      in_parallel(next, std::min(next + block, shapes_.size()), make_floor);
      if (watch) result_.stopped = !watch(progress(0));
    }
  }

  template <class Work>
  void in_parallel(std::size_t first, std::size_t last, Work&& work) {
    arena_.execute([&] {
      oneapi::tbb::parallel_for(first, last, [&](std::size_t i) { work(*openers_.local(), i); });
    });
  }

  void queue_shapes() {
    for (Shape& shape : shapes_) queue_.push_back(&shape);
    if (settings_.exhaustive) return;
    std::stable_sort(queue_.begin(), queue_.end(), [](const Shape* a, const Shape* b) {
      return a->objective_floor < b->objective_floor;
    });
  }

  // The next shapes that may hold something better; those passed over are counted. The first waves
  // are short: nothing bounds them.
  std::vector<Shape*> next_wave(std::size_t& next) {
    constexpr std::size_t widest = 16;
    width_ = settings_.exhaustive ? widest : std::min(widest, 2 * width_);
    std::vector<Shape*> wave;
    for (; next < queue_.size() && wave.size() < width_; ++next) {
      if (hopeless(*queue_[next])) {
        cut(*queue_[next], floor_too_slow);
      } else {
        wave.push_back(queue_[next]);
      }
    }
    return wave;
  }

  bool hopeless(const Shape& shape) const {
    return !settings_.exhaustive && shape.objective_floor > std::min(best_.threshold(), most_) &&
           (!settings_.front || front_.beats(shape.floor.seconds_per_token, shape.floor.device));
  }

  void cut(const Shape& shape, std::string_view why) {
    result_.rejected[why] += shape.points;
    result_.grid[{shape.layout.tp, shape.layout.pp}].cut = true;
  }

  void open(const std::vector<Shape*>& wave) {
    const Bar bar = this->bar();
    std::vector<Opened> opened(wave.size());
    in_parallel(0, wave.size(), [&](Opener& opener, std::size_t i) {
      opened[i] = opener.open(wave[i]->space, wave[i]->layout, bar, wave[i]->refused);
    });
    for (std::size_t i = 0; i < wave.size(); ++i) {
      merge(*wave[i], opened[i]);
      if (!opened[i].best) continue;
      found_.push_back({wave[i], opened[i].best});
      best_.add(*opened[i].best);
    }
    std::erase_if(found_,
                  [&](const Found& found) { return value_of(*found.plan) > best_.threshold(); });
  }

  Bar bar() const {
    return {.objective = settings_.objective,
            .exhaustive = settings_.exhaustive,
            .front = settings_.front ? &front_ : nullptr,
            .threshold = std::min(best_.threshold(), most_),
            .slowest = slowest_,
            .none_fits = found_.empty() && most_ == no_threshold};
  }

  double value_of(const Scored& s) const { return objective_value(settings_.objective, s); }

  // The best of what was found that also fit with the allocator replayed. Replaying is dear: only
  // what would be among the best is.
  void confirm() {
    Bar bar = this->bar();
    bar.front = nullptr;  // it is complete
    std::vector<Found*> unknown;
    do {
      best_ = BestShapes(settings_.objective, std::max(settings_.shapes, fewest_together),
                         settings_.kin);
      for (const Found& found : found_) best_.add(*found.plan);
      unknown.clear();
      for (Found& found : found_) {
        if (!found.played && best_.holds(*found.plan)) unknown.push_back(&found);
      }
      in_parallel(0, unknown.size(),
                  [&](Opener& opener, std::size_t i) { play(opener, bar, *unknown[i]); });
      std::erase_if(found_, [](const Found& found) { return !found.plan; });
    } while (!unknown.empty());
    for (const Scored& plan : best_.plans()) {
      if (result_.best.size() == settings_.shapes) break;
      const auto found = std::find_if(found_.begin(), found_.end(),
                                      [&](const Found& f) { return same_plan(*f.plan, plan); });
      result_.best.push_back(plan);
      result_.played.push_back(*found->played);
    }
  }

  // A shape whose plan is refused is opened again.
  static void play(Opener& opener, const Bar& bar, Found& found) {
    Shape& shape = *found.shape;
    if (auto played = opener.played(shape.space, *found.plan)) {
      found.played = std::make_shared<const Estimate>(std::move(*played));
      return;
    }
    shape.refused.push_back(*found.plan);
    found.plan = opener.open(shape.space, shape.layout, bar, shape.refused).best;
  }

  void merge(const Shape& shape, const Opened& opened) {
    front_.add(opened.front);
    result_.evaluated += opened.evaluated;
    result_.feasible += opened.feasible;
    for (const auto& [why, count] : opened.rejected) result_.rejected[why] += count;
    if (opened.least && (!result_.least || opened.least->device < result_.least->device)) {
      result_.least = opened.least;
    }
    if (opened.least_floor) {
      result_.least_floor =
          std::min(result_.least_floor.value_or(*opened.least_floor), *opened.least_floor);
    }
    GridCell& cell = result_.grid[{shape.layout.tp, shape.layout.pp}];
    if (opened.untimed) cell.cut = true;
    for (const Scored& plan : opened.front) {
      if (cell.seconds_per_token == 0 || plan.seconds_per_token < cell.seconds_per_token) {
        cell.seconds_per_token = plan.seconds_per_token;
      }
    }
  }

  Progress progress(std::size_t next) const {
    Progress p{.evaluated = result_.evaluated,
               .share_done = static_cast<double>(next) / static_cast<double>(shapes_.size())};
    if (!best_.plans().empty()) p.best = best_.plans().front();
    return p;
  }

  const std::vector<SearchSpace>& spaces_;
  SearchSettings settings_;
  std::size_t threads_;
  oneapi::tbb::global_control allowed_;
  oneapi::tbb::task_arena arena_;
  oneapi::tbb::enumerable_thread_specific<std::unique_ptr<Opener>> openers_;
  std::size_t width_ = 1;          // of a wave
  double slowest_ = no_threshold;  // what plans may be: seconds a token
  double most_ = no_threshold;     // and value of the objective
  std::vector<Shape> shapes_;
  std::vector<Shape*> queue_;  // in the order in which they are opened
  std::vector<Found> found_;   // no more than the threshold
  BestShapes best_;
  ParetoFront front_;
  SearchResult result_;
};

}  // namespace

std::size_t all_cores() {
  return static_cast<std::size_t>(std::max(1, oneapi::tbb::info::default_concurrency()));
}

SearchResult search(const std::vector<SearchSpace>& spaces,
                    const SearchSettings& settings,
                    const Watch& watch) {
  return Search(spaces, settings).run(watch);
}

}  // namespace zeroplan
