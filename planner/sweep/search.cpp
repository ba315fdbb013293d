// Which layouts of a space are best? Front door: search.
#include "planner/sweep/search.hpp"

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>

#include "cost_model/estimate.hpp"
#include "cost_model/step_time.hpp"
#include "planner/sweep/floors.hpp"

namespace zeroplan {
namespace {

struct Node {
  Layout layout;
  std::size_t space = 0;
  std::int64_t points = 0;
  double seconds_floor = 0;  // a token
  Bytes memory_floor;
  double objective_floor = 0;
};

// What opening one node gave.
struct Opened {
  std::vector<Scored> fitting;  // not above the threshold
  std::vector<Scored> front;
  std::int64_t evaluated = 0;
  std::int64_t feasible = 0;
  bool untimed = false;  // some that fit, since others are better
  std::int64_t too_large = 0;
  std::int64_t unreachable = 0;
  std::optional<Scored> least;
  Rejections cut;       // by floors
  Rejections rejected;  // those too
};

double tokens(const Problem& p) {
  return static_cast<double>(p.training.global_batch) *
         static_cast<double>(p.training.sequence_length);
}

// What one thread remembers.
struct Worker {
  explicit Worker(const std::vector<SearchSpace>& spaces)
      : remembered(spaces.front().request.model) {
    for (const SearchSpace& space : spaces) floors.emplace_back(space, remembered);
  }
  Remembered remembered;
  std::deque<Floors> floors;  // of each space
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
        workers_([&] { return std::make_unique<Worker>(spaces); }),
        best_(settings.objective, settings.shapes) {}

  SearchResult run(const Watch& watch) {
    for (std::size_t i = 0; i < spaces_.size(); ++i) collect(i);
    sort_nodes();
    std::size_t next = 0;
    while (next < nodes_.size() && !result_.stopped) {
      const std::vector<const Node*> wave = next_wave(next);
      open(wave);
      if (watch) result_.stopped = !watch(progress(next));
    }
    for (; next < nodes_.size(); ++next) cut(nodes_[next], not_looked_at);
    result_.best = best_.plans();
    if (settings_.front || settings_.exhaustive) result_.front = front_.plans();
    return std::move(result_);
  }

 private:
  // Nodes of one space with their floors, which are made in parallel, each in its own place.
  void collect(std::size_t space) {
    Enumeration enumeration(spaces_[space]);
    const std::size_t first = nodes_.size();
    enumeration.nodes([&](const Problem& p) {
      nodes_.push_back({.layout = p.layout, .space = space, .points = enumeration.size()});
    });
    result_.points += enumeration.size();
    for (const auto& [rule, count] : enumeration.rejected()) result_.rejected[rule] += count;
    arena_.execute([&] {
      oneapi::tbb::parallel_for(first, nodes_.size(), [&](std::size_t i) { bound(nodes_[i]); });
    });
  }

  void bound(Node& node) const {
    const SearchSpace& space = spaces_[node.space];
    Problem p = open_problem(space.request);
    p.layout = node.layout;
    derive(space.request, p);
    Floors& floors = workers_.local()->floors[node.space];
    node.memory_floor = floors.memory(p);
    node.seconds_floor = floors.time(with_least_recompute(space, p)) / tokens(p);
    node.objective_floor =
        objective_value(settings_.objective, p.cluster.gpus, node.seconds_floor, node.memory_floor);
  }

  void sort_nodes() {
    for (const Node& node : nodes_) {
      if (!result_.least_floor || node.memory_floor < *result_.least_floor) {
        result_.least_floor = node.memory_floor;
      }
    }
    if (settings_.exhaustive) return;
    std::stable_sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) {
      return a.objective_floor < b.objective_floor;
    });
  }

  // The next nodes that may hold something better; those passed over are counted. The first waves
  // are short: nothing bounds them.
  std::vector<const Node*> next_wave(std::size_t& next) {
    constexpr std::size_t widest = 16;
    width_ = settings_.exhaustive ? widest : std::min(widest, 2 * width_);
    std::vector<const Node*> wave;
    for (; next < nodes_.size() && wave.size() < width_; ++next) {
      const Node& node = nodes_[next];
      if (!settings_.exhaustive) {
        if (node.memory_floor > capacity(node)) {
          cut(node, floor_too_large);
          continue;
        }
        if (hopeless(node.objective_floor, node.seconds_floor, node.memory_floor)) {
          cut(node, floor_too_slow);
          continue;
        }
      }
      wave.push_back(&node);
    }
    return wave;
  }

  bool hopeless(double objective, double seconds_per_token, Bytes device) const {
    return objective > best_.threshold() &&
           (!settings_.front || front_.beats(seconds_per_token, device));
  }

  Bytes capacity(const Node& node) const { return spaces_[node.space].request.cluster.gpu.memory; }

  void cut(const Node& node, std::string_view why) {
    result_.rejected[why] += node.points;
    if (why != floor_too_large) result_.grid[{node.layout.tp, node.layout.pp}].cut = true;
  }

  void open(const std::vector<const Node*>& wave) {
    std::vector<Opened> opened(wave.size());
    arena_.execute([&] {
      oneapi::tbb::parallel_for(std::size_t{0}, wave.size(),
                                [&](std::size_t i) { opened[i] = open(*wave[i]); });
    });
    confirm(wave, opened);
    for (std::size_t i = 0; i < wave.size(); ++i) merge(*wave[i], opened[i]);
  }

  // Every point below a node. The threshold is that of the wave; the node's own finds do not move
  // it, so that what is counted does not depend on their order.
  Opened open(const Node& node) const {
    Opened out;
    const SearchSpace& space = spaces_[node.space];
    Worker& worker = *workers_.local();
    const Remembered& remembered = worker.remembered;
    ParetoFront front;
    Enumeration enumeration(space);
    double seconds_floor = node.seconds_floor;  // a token, of the group
    std::optional<Layout> known;                // whose memory is
    WorstStage memory;
    // Layers to recompute with which nothing can be better.
    const auto enter = [&](const Problem& group) {
      if (settings_.exhaustive) return true;
      Floors& floors = worker.floors[node.space];
      seconds_floor = floors.time(group) / tokens(group);
      const Bytes least = floors.memory(group);
      const bool large = least > capacity(node);
      const double value =
          objective_value(settings_.objective, group.cluster.gpus, seconds_floor, least);
      const bool slow =
          value > best_.threshold() && (!settings_.front || front.beats(seconds_floor, least) ||
                                        front_.beats(seconds_floor, least));
      if (!large && !slow) return true;
      out.cut[large ? floor_too_large : floor_too_slow] += enumeration.size();
      if (!large) out.untimed = true;
      return false;
    };
    const auto visit = [&](const Problem& p) {
      ++out.evaluated;
      Layout as_set = p.layout;  // overlap needs no memory
      as_set.overlap = Overlap::as_set;
      if (known != as_set) memory = worst_stage(p, remembered);
      known = as_set;
      Scored scored{.layout = p.layout, .gpus = p.cluster.gpus, .device = memory.device};
      if (memory.verdict != Verdict::fits) {
        ++out.too_large;
        if (!out.least || scored.device < out.least->device) out.least = scored;
        return;
      }
      const auto outdone = [&](double floor) {
        const double value =
            objective_value(settings_.objective, scored.gpus, floor, scored.device);
        return value > best_.threshold() &&
               (!settings_.front || front.beats(floor, scored.device) ||
                front_.beats(floor, scored.device));
      };
      if (!settings_.exhaustive) {
        double floor = seconds_floor;
        if (!outdone(floor)) floor += update_floor(p, remembered) / tokens(p);
        if (outdone(floor)) {
          ++out.feasible;
          out.untimed = true;
          return;
        }
      }
      scored.seconds = step_seconds(p, remembered);
      if (!std::isfinite(scored.seconds)) {
        ++out.unreachable;
        return;
      }
      ++out.feasible;
      scored.seconds_per_token = scored.seconds / tokens(p);
      front.add(scored);
      const double value = objective_value(settings_.objective, scored.gpus,
                                           scored.seconds_per_token, scored.device);
      if (value <= best_.threshold()) out.fitting.push_back(scored);
    };
    enumeration.points(node.layout, visit, enter);
    out.front = front.plans();
    out.rejected = enumeration.rejected();
    for (const auto& [why, count] : out.cut) out.rejected[why] += count;
    return out;
  }

  // The plans of a wave that are among the best so far and still fit with the allocator replayed.
  // Replaying is dear, so the best are tried first, and what cannot enter not at all.
  void confirm(const std::vector<const Node*>& wave, const std::vector<Opened>& opened) {
    struct Candidate {
      Scored plan;
      const SearchSpace* space;
    };
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < wave.size(); ++i) {
      for (const Scored& plan : opened[i].fitting) {
        candidates.push_back({plan, &spaces_[wave[i]->space]});
      }
    }
    std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
      return better(settings_.objective, a.plan, b.plan);
    });
    for (const Candidate& candidate : candidates) {
      if (!best_.takes(candidate.plan)) continue;
      if (fits_when_played(*candidate.space, candidate.plan)) best_.add(candidate.plan);
    }
  }

  // Replaying is dear: what needs as much as a refused plan of the same shape, micro-batch and kind
  // of recompute is refused with it.
  bool fits_when_played(const SearchSpace& space, const Scored& plan) {
    for (const Scored& refused : refused_) {
      if (same_shape(refused, plan) && refused.layout.micro_batch == plan.layout.micro_batch &&
          refused.layout.recompute == plan.layout.recompute && refused.device <= plan.device) {
        return false;
      }
    }
    Problem p = open_problem(space.request);
    p.layout = plan.layout;
    derive(space.request, p);
    const bool fits = zeroplan::fits_when_played(p, workers_.local()->remembered);
    if (!fits) refused_.push_back(plan);
    return fits;
  }

  void merge(const Node& node, const Opened& opened) {
    front_.add(opened.front);
    result_.evaluated += opened.evaluated;
    result_.feasible += opened.feasible;
    for (const auto& [rule, count] : opened.rejected) result_.rejected[rule] += count;
    if (opened.too_large > 0) result_.rejected[too_large] += opened.too_large;
    if (opened.unreachable > 0) result_.rejected[no_network] += opened.unreachable;
    if (opened.least && (!result_.least || opened.least->device < result_.least->device)) {
      result_.least = opened.least;
    }
    GridCell& cell = result_.grid[{node.layout.tp, node.layout.pp}];
    if (opened.untimed) cell.cut = true;
    for (const Scored& plan : opened.front) {
      if (cell.seconds_per_token == 0 || plan.seconds_per_token < cell.seconds_per_token) {
        cell.seconds_per_token = plan.seconds_per_token;
      }
    }
  }

  Progress progress(std::size_t next) const {
    Progress p{.evaluated = result_.evaluated,
               .share_done = static_cast<double>(next) / static_cast<double>(nodes_.size())};
    if (!best_.plans().empty()) p.best = best_.plans().front();
    return p;
  }

  const std::vector<SearchSpace>& spaces_;
  const SearchSettings& settings_;
  std::size_t threads_;
  oneapi::tbb::global_control allowed_;
  oneapi::tbb::task_arena arena_;
  mutable oneapi::tbb::enumerable_thread_specific<std::unique_ptr<Worker>> workers_;
  std::size_t width_ = 1;  // of a wave
  std::vector<Node> nodes_;
  std::vector<Scored> refused_;  // by the allocator's replay
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
