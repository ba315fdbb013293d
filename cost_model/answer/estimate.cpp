// Does it fit? Front door: estimate.
#include "cost_model/answer/estimate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace zeroplan {
namespace {

double normal_cumulative(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

Verdict verdict_of(Bytes device, Bytes half_band, Bytes capacity) {
  return device + half_band <= capacity  ? Verdict::fits
         : device - half_band > capacity ? Verdict::does_not_fit
                                         : Verdict::tight;
}

// Worst stage, band and verdict, from the stages.
void judge(const Problem& problem, Estimate& result) {
  result.capacity = problem.cluster.gpu.memory;
  result.worst = 0;
  for (std::size_t i = 0; i < result.stages.size(); ++i) {
    if (result.stages[i].memory.device() > result.device()) result.worst = i;
  }
  const Bytes device = result.device();
  const Bytes half = half_band(problem, stage_bytes(result.peak()));
  result.low = device - half;
  result.high = device + half;
  if (half == Bytes{}) {
    result.fit_probability = device <= result.capacity ? 1 : 0;
  } else {
    const double deviation = static_cast<double>(half.count()) / 2;
    result.fit_probability =
        normal_cumulative(static_cast<double>(result.headroom().count()) / deviation);
  }
  result.verdict = verdict_of(device, half, result.capacity);
}

enum class Until { all_known, one_is_too_large };

// What stages hold beyond what they allocate, as a part of it. Those that hold the same ends of the
// model run the same blocks, so they waste alike. Of 1,354 first stages of an end that were
// replayed after others, in 60 searches on four runtimes, none wasted more than is granted here and
// was the worst for it.
class Waste {
 public:
  struct Part {
    double usual;
    double most;  // but for rare ones
  };
  /// Of a stage, by those that were played; empty before one was.
  std::optional<Part> expected(const Stage& stage) const {
    constexpr double alike = 0.01;
    constexpr double others = 0.1;
    if (const std::optional<double>& seen = of_ends_[ends(stage)]) {
      return Part{*seen, *seen + alike};
    }
    const std::optional<double> most = std::ranges::max(of_ends_);  // one without a value is least
    return most ? std::optional(Part{*most, 2 * *most + others}) : std::nullopt;
  }
  void add(const Stage& stage, double wasted) {
    std::optional<double>& seen = of_ends_[ends(stage)];
    seen = std::max(seen.value_or(0), wasted);
  }

 private:
  static std::size_t ends(const Stage& stage) {
    return static_cast<std::size_t>(2 * stage.embedding + stage.head);
  }

  std::array<std::optional<double>, 4> of_ends_;
};

// Replays the stages from the one that allocates most downwards, but for those that are not likely
// to need more than one that was played. False once one is known to be too large, where that ends
// it.
bool play_stages(const Problem& problem,
                 const Evaluator& evaluator,
                 Until until,
                 Estimate& result) {
  if (!has_allocator(problem)) return true;
  const Bytes fits = most_that_fits(problem.runtime, problem.cluster.gpu.memory);
  std::vector<std::size_t> order(result.stages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return result.stages[a].memory.allocated() > result.stages[b].memory.allocated();
  });
  const std::vector<Stage> all = stages(problem);
  Bytes most;  // reserved by a played stage
  Waste waste;
  for (const std::size_t i : order) {
    StageMemory& stage = result.stages[i];
    const auto allocated = static_cast<double>(stage.memory.allocated().count());
    if (const std::optional<Waste::Part> wasted = waste.expected(all[i])) {
      const auto times_allocated = [&](double factor) {
        return Bytes{static_cast<std::int64_t>(factor * allocated)};
      };
      if (times_allocated(1 + wasted->most) < most) {
        stage.memory[Category::fragmentation] = times_allocated(wasted->usual);
        continue;
      }
    }
    if (until == Until::all_known) {
      play_allocator(problem, evaluator, all[i], stage);
    } else if (!play_up_to(fits, problem, evaluator, all[i], stage)) {
      return false;
    }
    most = std::max(most, stage.memory.reserved());
    waste.add(all[i],
              static_cast<double>(stage.memory[Category::fragmentation].count()) / allocated);
  }
  judge(problem, result);
  return true;
}

// A loop of its own for each way to weigh a run: that of most searches keeps it in registers.
template <class BytesOf>
WorstStage worst_stage(const PlanPoint& point, const BytesOf& bytes_of) {
  const LayoutPieces& known = point.layout();
  StageBytes most = bytes_of(point, 0);
  std::size_t run_of_most = 0;
  const std::size_t runs = known.runs();
  for (std::size_t run = 1; run < runs; ++run) {
    const StageBytes bytes = bytes_of(point, run);
    if (bytes.device() <= most.device()) continue;
    most = bytes;
    run_of_most = run;
  }
  const Bytes device = most.device();
  const Problem& problem = known.problem();
  return {.stage = known.firsts()[run_of_most],
          .device = device,
          .verdict = verdict_of(device, half_band(problem, most), problem.cluster.gpu.memory)};
}

}  // namespace

Estimate estimate(const Problem& problem, const Evaluator& evaluator) {
  Estimate result;
  std::int64_t index = 0;
  for (const Stage& stage : stages(problem)) {
    result.stages.push_back(stage_memory(problem, evaluator, stage, index++));
  }
  judge(problem, result);
  Bytes host;
  for (const StageMemory& stage : result.stages) host = std::max(host, stage.host.total());
  result.host_a_node = std::min(problem.cluster.gpus_per_node, problem.cluster.gpus) * host;
  return result;
}

Bytes least_device(const PlanPoint& point) {
  if (!code_of(point.layout().problem()).sums_blocks) return worst_stage(point).device;
  return worst_stage(point, least_megatron_stage_bytes).device;
}

Bytes least_repeating_device(const PlanPoint& point) {
  return worst_stage(point, least_repeating_stage_bytes).device;
}

WorstStage worst_stage(const PlanPoint& point) {
  if (code_of(point.layout().problem()).sums_blocks) {
    return worst_stage(point, megatron_stage_bytes);
  }
  return worst_stage(point,
                     [](const PlanPoint& e, std::size_t run) { return stage_bytes(e, run); });
}

void play_resumed(const Problem& problem, const Evaluator& evaluator, Estimate& result) {
  if (!has_allocator(problem)) return;
  const StageMemory& peak = result.peak();
  const Stage stage = stages(problem)[static_cast<std::size_t>(peak.stage)];
  const Replay resumed = run_of(problem, evaluator, stage, peak, Start::resumed);
  result.resumed = resumed.peak_reserved();
  result.phases = phases_of(peak.phases, resumed);
}

Estimate played_estimate(const Problem& problem, const Evaluator& evaluator) {
  Estimate result = estimate(problem, evaluator);
  play_stages(problem, evaluator, Until::all_known, result);
  play_resumed(problem, evaluator, result);
  return result;
}

std::optional<Estimate> played_where_it_fits(const Problem& problem, const Evaluator& evaluator) {
  Estimate result = estimate(problem, evaluator);
  const bool may_fit = play_stages(problem, evaluator, Until::one_is_too_large, result);
  if (!may_fit || result.verdict != Verdict::fits) return std::nullopt;
  return result;
}

WorstStage floor_of_replay(const Problem& problem,
                           const Evaluator& evaluator,
                           std::optional<Bytes> enough) {
  const LayoutPieces known = evaluator.pieces(problem);
  std::vector<StageBytes> needed;
  WorstStage floor;
  for (const std::size_t i : known.firsts()) {
    StageMemory memory =
        stage_memory(problem, evaluator, known.stages()[i], static_cast<std::int64_t>(i));
    if (has_allocator(problem)) memory.memory[Category::fragmentation] = {};
    const StageBytes bytes = stage_bytes(memory);
    needed.push_back(bytes);
    if (bytes.device() <= floor.device) continue;
    floor.device = bytes.device();
    floor.stage = i;
    if (enough && floor.device > *enough) break;
  }
  // Whichever stage turns out to be the worst, it needs as much, and has a band of its own.
  for (StageBytes& bytes : needed) {
    bytes.reserved = floor.device - bytes.outside;
    floor.verdict = std::min(floor.verdict, verdict_of(floor.device, half_band(problem, bytes),
                                                       problem.cluster.gpu.memory));
  }
  return floor;
}

Bytes most_that_fits(const RuntimeSpec& runtime, Bytes capacity) {
  const MemoryBand band = code_of(runtime).memory_band;
  const double part = std::min(band.reserved, band.outside);
  const double most = static_cast<double>(capacity.count()) / (1 + part);
  return std::min(capacity, Bytes{static_cast<std::int64_t>(std::ceil(most))});
}

Bytes half_band(const Problem& problem, const StageBytes& peak) {
  const auto share = [](Bytes bytes, double part) {
    const double exact = part * static_cast<double>(bytes.count());
    const auto whole = static_cast<std::int64_t>(exact);
    return Bytes{whole + (static_cast<double>(whole) < exact)};  // rounded up
  };
  const MemoryBand band = code_of(problem).memory_band;
  return share(peak.reserved, band.reserved) + share(peak.outside, band.outside) +
         share(peak.activations, band.activations) +
         share(peak.device() - peak.states, band.beyond_states);
}

}  // namespace zeroplan
