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
};

std::size_t cores() {
  return static_cast<std::size_t>(std::max(1, oneapi::tbb::info::default_concurrency()));
}

class Search {
 public:
  Search(const std::vector<SearchSpace>& spaces, const SearchSettings& settings)
      : spaces_(spaces),
        settings_(settings),
        threads_(settings.threads > 0 ? settings.threads : cores()),
        allowed_(oneapi::tbb::global_control::max_allowed_parallelism, threads_),
        arena_(static_cast<int>(threads_)),
        openers_([&] { return std::make_unique<Opener>(spaces); }),
        best_(settings.objective, settings.shapes) {}

  SearchResult run(const Watch& watch) {
    for (std::size_t i = 0; i < spaces_.size() && !result_.stopped; ++i) collect(i, watch);
    sort_shapes();
    std::size_t next = 0;
    while (next < shapes_.size() && !result_.stopped) {
      const std::vector<const Shape*> wave = next_wave(next);
      open(wave);
      if (watch) result_.stopped = !watch(progress(next));
    }
    for (; next < shapes_.size(); ++next) cut(shapes_[next], not_looked_at);
    result_.best = best_.plans();
    if (settings_.front || settings_.exhaustive) result_.front = front_.plans();
    return std::move(result_);
  }

 private:
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
      shape.objective_floor =
          objective_value(settings_.objective, spaces_[space].request.cluster.gpus,
                          shape.floor.seconds_per_token, shape.floor.device);
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

  void sort_shapes() {
    if (settings_.exhaustive) return;
    std::stable_sort(shapes_.begin(), shapes_.end(), [](const Shape& a, const Shape& b) {
      return a.objective_floor < b.objective_floor;
    });
  }

  // The next shapes that may hold something better; those passed over are counted. The first waves
  // are short: nothing bounds them.
  std::vector<const Shape*> next_wave(std::size_t& next) {
    constexpr std::size_t widest = 16;
    width_ = settings_.exhaustive ? widest : std::min(widest, 2 * width_);
    std::vector<const Shape*> wave;
    for (; next < shapes_.size() && wave.size() < width_; ++next) {
      if (hopeless(shapes_[next])) {
        cut(shapes_[next], floor_too_slow);
      } else {
        wave.push_back(&shapes_[next]);
      }
    }
    return wave;
  }

  bool hopeless(const Shape& shape) const {
    return !settings_.exhaustive && shape.objective_floor > best_.threshold() &&
           (!settings_.front || front_.beats(shape.floor.seconds_per_token, shape.floor.device));
  }

  void cut(const Shape& shape, std::string_view why) {
    result_.rejected[why] += shape.points;
    result_.grid[{shape.layout.tp, shape.layout.pp}].cut = true;
  }

  void open(const std::vector<const Shape*>& wave) {
    const Bar bar{.objective = settings_.objective,
                  .exhaustive = settings_.exhaustive,
                  .front = settings_.front ? &front_ : nullptr,
                  .threshold = best_.threshold()};
    std::vector<Opened> opened(wave.size());
    in_parallel(0, wave.size(), [&](Opener& opener, std::size_t i) {
      opened[i] = opener.open(wave[i]->space, wave[i]->layout, bar, {});
    });
    choose_plans(wave, bar, opened);
    for (std::size_t i = 0; i < wave.size(); ++i) merge(*wave[i], opened[i]);
  }

  // Of each shape the best plan that fits with the allocator replayed, too. Replaying is dear: only
  // what would be among the best is, and a shape whose plan is refused is opened again.
  void choose_plans(const std::vector<const Shape*>& wave,
                    const Bar& bar,
                    std::vector<Opened>& opened) {
    std::vector<char> fits(wave.size());  // not bits: written side by side
    std::vector<std::vector<Scored>> refused(wave.size());
    for (;;) {
      BestShapes best = best_;
      for (const Opened& shape : opened) {
        if (shape.best) best.add(*shape.best);
      }
      std::vector<std::size_t> unknown;
      for (std::size_t i = 0; i < wave.size(); ++i) {
        if (opened[i].best && !fits[i] && best.holds(*opened[i].best)) unknown.push_back(i);
      }
      if (unknown.empty()) {
        best_ = std::move(best);
        return;
      }
      in_parallel(0, unknown.size(), [&](Opener& opener, std::size_t k) {
        const std::size_t i = unknown[k];
        const Shape& shape = *wave[i];
        fits[i] = opener.fits_when_played(shape.space, *opened[i].best);
        if (fits[i]) return;
        refused[i].push_back(*opened[i].best);
        opened[i] = opener.open(shape.space, shape.layout, bar, refused[i]);
      });
    }
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
  const SearchSettings& settings_;
  std::size_t threads_;
  oneapi::tbb::global_control allowed_;
  oneapi::tbb::task_arena arena_;
  oneapi::tbb::enumerable_thread_specific<std::unique_ptr<Opener>> openers_;
  std::size_t width_ = 1;  // of a wave
  std::vector<Shape> shapes_;
  BestShapes best_;
  ParetoFront front_;
  SearchResult result_;
};

}  // namespace

SearchResult search(const std::vector<SearchSpace>& spaces,
                    const SearchSettings& settings,
                    const Watch& watch) {
  return Search(spaces, settings).run(watch);
}

}  // namespace zeroplan
